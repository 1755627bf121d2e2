import { createHash } from 'node:crypto';
import { FIELD_MANAGERS, GROUP } from '../../api/labels.ts';
import { CONFIG_MAPS } from '../../api/resources.ts';
import type { Retired } from '../../api/skill.ts';
import { pagesOf } from '../../kube/pages.ts';
import type { KubeClient } from '../../kube/rest.ts';
import type { KubeObject } from '../../kube/types.ts';

/** A version whose template or image could not be removed with its Skill; a later sweep works it off. */
export interface LedgerEntry {
  namespace: string;
  /** metadata.name and uid of the Skill. */
  skill: string;
  uid: string;
  /** Bare name, which the template's name begins with. */
  bareName: string;
  engine: string;
  digest: string;
  templateID?: string | undefined;
  image?: string | undefined;
  settings?: string | undefined;
  /** Not about one version: whatever the Skill's builds pushed and nothing names. */
  leftovers?: true | undefined;
  /** Why it is here. */
  why: string;
}

/** Label of the ConfigMaps that hold one entry each. */
const LEDGER_LABEL = `${GROUP}/ledger`;

const nameOf = (entry: LedgerEntry): string => {
  const { uid, engine, digest, templateID, image } = entry;
  const id = JSON.stringify([uid, engine, digest, templateID ?? '', image ?? '']);
  return `skill-operator-ledger-${createHash('sha256').update(id).digest('hex').slice(0, 16)}`;
};

/** The entry of a retired version. */
export function ledgerEntry(
  owner: { namespace: string; name: string; uid: string; bareName: string },
  version: Retired,
  why: string,
): LedgerEntry {
  const { engine = '', digest, templateID, image, settings } = version;
  const { namespace, name: skill, uid, bareName } = owner;
  return { namespace, skill, uid, bareName, engine, digest, templateID, image, settings, why };
}

/** The entry for images that nothing names, of a Skill that had to go before they could be looked for. */
export function leftoversEntry(owner: { namespace: string; name: string; uid: string; bareName: string }): LedgerEntry {
  const { namespace, name: skill, uid, bareName } = owner;
  return { namespace, skill, uid, bareName, engine: '', digest: '', leftovers: true, why: 'DeletionExpired' };
}

/** What the ledger needs of the API. */
type LedgerApi = Pick<KubeClient, 'patch' | 'delete' | 'listPage'>;

interface EntryMap extends KubeObject {
  data?: Record<string, string>;
}

/** Entries in ConfigMaps of the operator's namespace: one each, so that no write can lose another's. A copy in memory answers questions. */
export class Ledger {
  readonly #api: LedgerApi;
  readonly #namespace: string;
  readonly #entries = new Map<string, LedgerEntry>();
  #onAdd: () => void = () => undefined;

  constructor(api: LedgerApi, namespace: string) {
    this.#api = api;
    this.#namespace = namespace;
  }

  /** Calls `listener` whenever an entry was added. */
  onAdd(listener: () => void): void {
    this.#onAdd = listener;
  }

  /** Reads all entries; before the first pass of any Skill, so that no name is used that an entry still holds. */
  async load(signal: AbortSignal): Promise<void> {
    const scope = { namespace: this.#namespace, labelSelector: `${LEDGER_LABEL}=true` };
    const found = new Map<string, LedgerEntry>();
    for await (const maps of pagesOf<EntryMap>(this.#api, CONFIG_MAPS, scope, signal)) {
      for (const map of maps) {
        const entry = parseEntry(map.data?.entry);
        if (entry) found.set(map.metadata.name, entry);
      }
    }
    this.#entries.clear();
    for (const [name, entry] of found) this.#entries.set(name, entry);
  }

  /** All entries, by the name of their ConfigMap. */
  entries(): ReadonlyMap<string, LedgerEntry> {
    return this.#entries;
  }

  /** Every image that an entry still has to remove, by its full name. */
  images(): ReadonlySet<string> {
    return new Set([...this.#entries.values()].flatMap(({ image }) => (image === undefined ? [] : [image])));
  }

  /** Digests of a Skill whose image or template an entry still holds. */
  digestsOf(namespace: string, skill: string): string[] {
    const own = [...this.#entries.values()].filter((entry) => entry.namespace === namespace && entry.skill === skill);
    return own.flatMap(({ digest }) => (digest === '' ? [] : [digest]));
  }

  /** Writes an entry; writing it again changes nothing. */
  async add(entry: LedgerEntry, signal: AbortSignal): Promise<void> {
    const name = nameOf(entry);
    const body = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name, namespace: this.#namespace, labels: { [LEDGER_LABEL]: 'true' } },
      data: { entry: JSON.stringify(entry) },
    };
    const patch = { kind: 'apply', body, fieldManager: FIELD_MANAGERS.skill, force: true } as const;
    await this.#api.patch<KubeObject>(CONFIG_MAPS, this.#namespace, name, patch, signal);
    this.#entries.set(name, entry);
    this.#onAdd();
  }

  /** The entry is worked off. */
  async remove(entry: LedgerEntry, signal: AbortSignal): Promise<void> {
    const name = nameOf(entry);
    await this.#api.delete(CONFIG_MAPS, this.#namespace, name, {}, signal);
    this.#entries.delete(name);
  }
}

const TEXTS = ['namespace', 'skill', 'uid', 'bareName', 'engine', 'digest', 'why'] as const;

/** An entry that somebody edited beyond recognition is left to that person. */
function parseEntry(text: string | undefined): LedgerEntry | undefined {
  try {
    const entry = JSON.parse(text ?? 'null') as LedgerEntry | null;
    return entry && TEXTS.every((key) => typeof entry[key] === 'string') ? entry : undefined;
  } catch {
    return undefined;
  }
}

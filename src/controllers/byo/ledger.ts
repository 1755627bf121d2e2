import { createHash } from 'node:crypto';
import { FIELD_MANAGERS, GROUP } from '../../api/labels.ts';
import { CONFIG_MAPS } from '../../api/resources.ts';
import type { Retired } from '../../api/skill.ts';
import type { KubeApi, KubeObject } from '../../kube/types.ts';

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
  /** Why it is here. */
  why: string;
}

/** Label of the ConfigMaps that hold one entry each. */
export const LEDGER_LABEL = `${GROUP}/ledger`;

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

/** Entries in ConfigMaps of the operator's namespace: one each, so that no write can lose another's. */
export class Ledger {
  readonly #api: KubeApi;
  readonly #namespace: string;

  constructor(api: KubeApi, namespace: string) {
    this.#api = api;
    this.#namespace = namespace;
  }

  /** Writes an entry; writing it again changes nothing. */
  async add(entry: LedgerEntry, signal: AbortSignal): Promise<void> {
    const body = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: nameOf(entry), namespace: this.#namespace, labels: { [LEDGER_LABEL]: 'true' } },
      data: { entry: JSON.stringify(entry) },
    };
    const patch = { kind: 'apply', body, fieldManager: FIELD_MANAGERS.skill, force: true } as const;
    await this.#api.patch<KubeObject>(CONFIG_MAPS, this.#namespace, body.metadata.name, patch, signal);
  }

  /** The entry is worked off. */
  async remove(entry: LedgerEntry, signal: AbortSignal): Promise<void> {
    await this.#api.delete(CONFIG_MAPS, this.#namespace, nameOf(entry), {}, signal);
  }
}

import { GROUP } from '../../api/labels.ts';
import { CONFIG_MAPS } from '../../api/resources.ts';
import { type Clock, rfc3339 } from '../../base/clock.ts';
import type { Logger } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { EventInput } from '../../kube/events.ts';
import type { KubeApi, KubeObject } from '../../kube/types.ts';

/** What keeps heal or sweep from acting until a person has looked. `EngineSuspect` carries the engine: `EngineSuspect.e2b`. */
export type BlockKind = 'SweepBlocked' | 'StoreSuspect' | `EngineSuspect.${string}`;

/** One block, as the ConfigMap holds it. */
interface Block {
  /** Value of the annotation that lifts it. */
  token: string;
  /** RFC 3339. */
  since: string;
  message: string;
  /** The command that lifts it. */
  allow: string;
}

/** Annotations of the ConfigMap by which a person lifts a block; the value is the token of the block. */
const ALLOW: Record<string, string> = {
  SweepBlocked: `${GROUP}/allow-sweep`,
  StoreSuspect: `${GROUP}/allow-store-heal`,
  EngineSuspect: `${GROUP}/allow-engine-heal`,
};

/** ConfigMap of the operator's namespace in which blocks stand. */
const STATE_CONFIG_MAP = 'skill-operator-state';

interface ConfigMap extends KubeObject {
  data?: Record<string, string>;
}

interface StateOptions {
  api: KubeApi;
  /** The operator's own. */
  namespace: string;
  clock: Clock;
  logger: Logger;
  metrics: Pick<Metrics, 'blocked'>;
  events: { record(regarding: KubeObject, input: EventInput): void };
}

const annotationOf = (kind: BlockKind): string => ALLOW[kind.split('.', 1)[0] ?? ''] ?? '';

/** The blocks of heal and sweep in ConfigMap `skill-operator-state`: raised here, lifted by a person's annotation, gone when their cause is. */
export class OperatorState {
  readonly #options: StateOptions;

  constructor(options: StateOptions) {
    this.#options = options;
  }

  /** The token of a standing block when a person allowed it; undefined when there is none or nobody did. */
  async allowed(kind: BlockKind, signal: AbortSignal): Promise<string | undefined> {
    const map = await this.#read(signal);
    const block = blockOf(map, kind);
    return block && map?.metadata.annotations?.[annotationOf(kind)] === block.token ? block.token : undefined;
  }

  /** Raises a block, or says its message anew; an open one keeps its token. Writes only what changes. */
  async raise(kind: BlockKind, message: string, token: string, signal: AbortSignal): Promise<void> {
    const { namespace, clock, logger, metrics, events } = this.#options;
    metrics.blocked(kind, true);
    const before = blockOf(await this.#read(signal), kind);
    if (before?.message === message) return;
    const kept = before?.token ?? token;
    const allow = `kubectl -n ${namespace} annotate --overwrite configmap ${STATE_CONFIG_MAP} ${annotationOf(kind)}=${kept}`;
    const block: Block = { token: kept, since: before?.since ?? rfc3339(clock.now()), message, allow };
    logger.warn({ block: kind, token: kept }, `${message}; ${allow}`);
    const written = await this.#apply(kind, { [kind]: JSON.stringify(block, undefined, 2) }, signal);
    if (before) return;
    const note = `${message}; if that is meant: ${allow}`;
    events.record(written, { type: 'Warning', reason: kind.split('.', 1)[0] ?? kind, action: 'Sweep', note });
  }

  /** The cause is gone or was allowed. Writes only where a block stands. */
  async clear(kind: BlockKind, signal: AbortSignal): Promise<void> {
    this.#options.metrics.blocked(kind, false);
    if (!blockOf(await this.#read(signal), kind)) return;
    await this.#apply(kind, {}, signal);
    this.#options.logger.info({ block: kind }, 'the block is lifted');
  }

  #read(signal: AbortSignal): Promise<ConfigMap | undefined> {
    return this.#options.api.get<ConfigMap>(CONFIG_MAPS, this.#options.namespace, STATE_CONFIG_MAP, signal);
  }

  /** Every kind has a field manager of its own: none of them can undo the others' entries. */
  #apply(kind: BlockKind, data: Record<string, string>, signal: AbortSignal): Promise<ConfigMap> {
    const { api, namespace } = this.#options;
    const metadata = { name: STATE_CONFIG_MAP, namespace };
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data };
    const patch = { kind: 'apply', body, fieldManager: `skill-operator-${kind}`, force: true } as const;
    return api.patch<ConfigMap>(CONFIG_MAPS, namespace, STATE_CONFIG_MAP, patch, signal);
  }
}

/** An entry that cannot be read is none: the block is raised anew with another token. */
function blockOf(map: ConfigMap | undefined, kind: BlockKind): Block | undefined {
  try {
    const block = JSON.parse(map?.data?.[kind] ?? 'null') as Partial<Block> | null;
    return typeof block?.token === 'string' ? ({ since: '', message: '', allow: '', ...block } as Block) : undefined;
  } catch {
    return undefined;
  }
}

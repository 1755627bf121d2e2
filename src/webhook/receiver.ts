import type { IncomingMessage } from 'node:http';
import { API_VERSION, FIELD_MANAGERS } from '../api/labels.ts';
import type { MarketplaceSource } from '../api/marketplacesource.ts';
import { MARKETPLACE_SOURCES } from '../api/resources.ts';
import type { Clock } from '../base/clock.ts';
import { withDeadline } from '../base/deadline.ts';
import { messageOf } from '../base/errors.ts';
import type { Logger } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import { hasCode } from '../kube/errors.ts';
import type { KubeClient } from '../kube/rest.ts';
import { Cache } from '../kube/store.ts';
import { type Key, splitKey } from '../kube/types.ts';
import { Watch, type WatchScope } from '../kube/watch.ts';
import { type Check, checkOf, decoy } from './check.ts';
import { type Claim, claimOf } from './claim.ts';
import { Coalescer } from './coalescer.ts';
import { type Answer, type Handler, HookServer, type Limits, REFUSED } from './http.ts';
import { type Token, TokenReader } from './tokens.ts';

/** What the receiver works with. */
export interface ReceiverOptions {
  /** `host:port` or `:port`. */
  address: string;
  api: KubeClient;
  scope: WatchScope;
  clock: Clock;
  logger: Logger;
  metrics: Pick<Metrics, 'webhookDelivery'>;
}

const LIMITS: Limits = {
  bodyBytes: 4 * 1024 * 1024,
  readMs: 10_000,
  deliveries: 64,
  connections: 512,
  refusalMs: 100,
};
/** Between two writes for one source. */
const PAUSE_MS = 3_000;
/** GitHub gives up after ten seconds. */
const WRITE_MS = 8_000;
/** Between two log lines of a kind about deliveries that were not taken: a flood must not fill the log. */
const QUIET_MS = 10_000;

/** What the headers and the cluster say about a delivery that is being read. */
interface Opened {
  claim: Claim;
  /** Why it will be refused, for the log alone. */
  doubt: string;
}

/** Only what a delivery needs: thousands of sources cost no memory twice. */
const trim = ({ metadata, spec }: MarketplaceSource): MarketplaceSource => {
  const { name, namespace, uid, resourceVersion, deletionTimestamp } = metadata;
  const kept = { name, namespace, uid, resourceVersion, deletionTimestamp } as MarketplaceSource['metadata'];
  const { type, suspend, webhook } = spec;
  return { metadata: kept, spec: { type, ...(suspend ? { suspend } : {}), ...(webhook ? { webhook } : {}) } };
};

/**
 * Takes deliveries of Git hosts on every replica, leader or not, and asks for a pass by one field of the source's status, which the
 * leader watches. It believes nothing before the proof held, parses no body, and tells nobody which sources exist.
 */
export class WebhookReceiver implements Handler, AsyncDisposable {
  readonly #options: ReceiverOptions;
  readonly #sources: Cache<MarketplaceSource>;
  readonly #watch: Watch<MarketplaceSource>;
  readonly #tokens: TokenReader;
  readonly #coalescer: Coalescer;
  readonly #opened = new WeakMap<IncomingMessage, Opened>();
  readonly #stop = new AbortController();
  readonly #server: HookServer;
  readonly #rare = {
    info: { count: 0, loggedAt: Number.NEGATIVE_INFINITY },
    warn: { count: 0, loggedAt: Number.NEGATIVE_INFINITY },
  };
  #watching: Promise<void> | undefined;

  constructor(options: ReceiverOptions) {
    const { api, clock, scope, logger } = options;
    this.#options = options;
    this.#sources = new Cache({ clock, namespaces: scope.namespaces });
    const watch = { client: api, resource: MARKETPLACE_SOURCES, cache: this.#sources, clock };
    this.#watch = new Watch({ ...watch, trim, logger, onChange: () => undefined }, scope);
    this.#tokens = new TokenReader(api, clock);
    this.#coalescer = new Coalescer({
      clock,
      pauseMs: PAUSE_MS,
      act: (key) => this.#ask(key, this.#stop.signal, WRITE_MS),
      failed: (key, error, last) =>
        logger.warn(
          { source: key },
          `a webhook delivery could not be passed on, ${last ? 'the source waits for its interval' : 'trying again'}: ${messageOf(error)}`,
        ),
    });
    this.#server = new HookServer(this, LIMITS, clock, this.#stop.signal);
  }

  /** True once the sources are known; before that every delivery would be refused. */
  get ready(): boolean {
    return this.#sources.synced;
  }

  /** False when the watch has been silent for too long; for the liveness probe. */
  get alive(): boolean {
    return this.#watch.alive;
  }

  /** Resolves once it listens; rejects where it cannot. */
  async start(): Promise<void> {
    const port = await this.#server.listen(this.#options.address);
    this.#watching = this.#watch.run(this.#stop.signal);
    this.#options.logger.info({ port }, 'receiving webhooks');
  }

  /** Lets deliveries under way end and passes on what waits. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.close();
    await this.#coalescer.flush();
    this.#stop.abort(new DOMException('the receiver is stopping', 'AbortError'));
    await this.#watching;
  }

  async open(key: Key, request: IncomingMessage): Promise<Check> {
    const claim = claimOf(request.headers);
    const opened: Opened = {
      claim,
      doubt: claim.proofs.length > 0 ? 'the signature does not match' : 'it is not signed',
    };
    this.#opened.set(request, opened);
    if (!this.ready) throw new Error('the sources are not known yet');
    const token = await this.#tokenOf(key);
    if ('token' in token) return checkOf(claim.proofs, token.token, this.#options.clock.now() / 1000);
    opened.doubt = token.missing;
    return decoy();
  }

  async close(key: Key, request: IncomingMessage, holds: boolean): Promise<Answer> {
    const { claim, doubt } = this.#opened.get(request) ?? { claim: claimOf(request.headers), doubt: '' };
    const { metrics, logger } = this.#options;
    if (!holds) {
      metrics.webhookDelivery(claim.host, 'refused');
      this.#logRarely('info', key, claim, `webhook delivery refused: ${doubt}`);
      return REFUSED;
    }
    if (claim.event === 'ping') {
      metrics.webhookDelivery(claim.host, 'ping');
      return { code: 200, text: 'pong: deliveries for this source are accepted' };
    }
    if (claim.event === 'other' || this.#sources.get(key)?.spec.suspend) {
      metrics.webhookDelivery(claim.host, 'ignored');
      const why = claim.event === 'other' ? 'only pushes start a pass' : 'the source is suspended';
      return { code: 202, text: `ignored: ${why}` };
    }
    const result = await this.#coalescer.request(key);
    metrics.webhookDelivery(claim.host, result === 'acted' ? 'accepted' : 'joined');
    const { host, eventName: event, delivery } = claim;
    logger.info({ source: key, host, event, ...(delivery ? { delivery } : {}) }, 'webhook delivery accepted');
    return {
      code: 202,
      text: result === 'acted' ? 'accepted: a pass starts' : 'accepted: a pass starts within seconds',
    };
  }

  failed(
    key: Key,
    request: IncomingMessage,
    why: 'tooLarge' | 'late' | 'gone' | 'busy' | 'error',
    error?: unknown,
  ): void {
    const { host } = this.#opened.get(request)?.claim ?? claimOf(request.headers);
    this.#options.metrics.webhookDelivery(host, why);
    if (why !== 'error' || this.#stop.signal.aborted) return;
    this.#logRarely('warn', key, { host }, `a webhook delivery failed: ${messageOf(error)}`);
  }

  async #tokenOf(key: Key): Promise<Token> {
    const source = this.#sources.get(key);
    if (!source || source.metadata.deletionTimestamp) return { missing: 'there is no such source' };
    const ref = source.spec.webhook?.secretRef;
    if (!ref) return { missing: 'the source has no spec.webhook' };
    return await this.#tokens.read(splitKey(key).namespace, ref.name, this.#stop.signal);
  }

  /**
   * Asks for a pass. The receiver owns this field alone and always sends it whole, and a status cannot bring an object back: the uid
   * is precondition enough, and a write never waits for those of the leader.
   */
  async #ask(key: Key, signal: AbortSignal, deadlineMs: number): Promise<void> {
    const source = this.#sources.get(key);
    if (!source) return;
    const { api, clock } = this.#options;
    const { namespace, name } = splitKey(key);
    const body = {
      apiVersion: API_VERSION,
      kind: MARKETPLACE_SOURCES.kind,
      metadata: { name, namespace, uid: source.metadata.uid },
      status: { lastWebhookAt: new Date(clock.now()).toISOString() },
    };
    const patch = { kind: 'apply', body, fieldManager: FIELD_MANAGERS.webhook, force: true } as const;
    try {
      await withDeadline(signal, deadlineMs, (inner) =>
        api.patch(MARKETPLACE_SOURCES, namespace, name, patch, inner, 'status'),
      );
    } catch (error) {
      // Deleted meanwhile, or deleted and made anew: nothing to ask for.
      if (!hasCode(error, 404) && !hasCode(error, 409)) throw error;
    }
  }

  /** The first of a kind at once, then one in ten seconds with the number of the others. */
  #logRarely(level: 'info' | 'warn', key: Key, { host }: Pick<Claim, 'host'>, text: string): void {
    const now = this.#options.clock.monotonic();
    const known = this.#rare[level];
    known.count++;
    if (now - known.loggedAt < QUIET_MS) return;
    const more = known.count > 1 ? `; ${known.count - 1} others since the last such line` : '';
    this.#rare[level] = { count: 0, loggedAt: now };
    this.#options.logger[level]({ source: key, host }, `${text}${more}`);
  }
}

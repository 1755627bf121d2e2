import { createHash } from 'node:crypto';
import type { AgentOptions, RequestOptions } from 'node:https';
import { KubeConfig } from '@kubernetes/client-node';
import { Agent, type Dispatcher, ProxyAgent, request } from 'undici';
import { type Clock, systemClock } from '../base/clock.ts';
import { withDeadline } from '../base/deadline.ts';
import { holdSecret } from '../base/redact.ts';

/** How long credentials are used before the token file, plugin or key files are looked at again, in milliseconds. */
const AUTH_TTL_MS = 10_000;
/** A credential plugin that hangs must not hold up every call. */
const AUTH_DEADLINE_MS = 30_000;
const CONNECT_TIMEOUT_MS = 10_000;

export interface ConnectionOptions {
  /** Reads the configuration anew; called at start and after a 401. */
  load: () => KubeConfig;
  /** Upper bound of open connections for calls. */
  connections: number;
  /** The same for watches, each of which holds one. */
  watches: number;
  userAgent: string;
  clock?: Clock;
}

export interface Exchange {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Path and query below the server's address. */
  path: string;
  contentType?: string;
  body?: string;
}

type Answer = Dispatcher.ResponseData;

interface Session {
  server: string;
  headers: Record<string, string>;
  calls: Dispatcher;
  watches: Dispatcher;
  /** Hash of everything TLS; another value needs other sockets. */
  tls: string;
  readAt: number;
}

/**
 * Configuration of `path`, or where absent what kubectl would use (KUBECONFIG, ~/.kube/config), or the pod's own account;
 * with `context` in place of its current one. Throws when nothing usable is found.
 */
export function loadKubeConfig(path?: string, context?: string): KubeConfig {
  const config = new KubeConfig();
  if (path) config.loadFromFile(path);
  else config.loadFromDefault();
  if (context === undefined) return config;
  const names = config.getContexts().map(({ name }) => name);
  if (!names.includes(context)) {
    throw new Error(`the kubeconfig has no context "${context}"; it has: ${names.join(', ') || 'none'}`);
  }
  config.setCurrentContext(context);
  return config;
}

/**
 * The sockets and credentials behind a client: client-node resolves auth and TLS, undici keeps one bounded pool
 * (client-node's own transport opens a TLS connection per call).
 */
export class Connection {
  readonly #options: ConnectionOptions;
  readonly #clock: Clock;
  #config: KubeConfig;
  #session: Session | undefined;
  #refreshing: Promise<Session> | undefined;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#config = options.load();
  }

  /** Namespace of the current context; inside a pod the pod's own. */
  get namespace(): string | undefined {
    return this.#config.getContextObject(this.#config.getCurrentContext())?.namespace;
  }

  /** Reads configuration and credentials anew; for the one retry after a 401. */
  async reload(signal: AbortSignal): Promise<void> {
    // A reading under way began before the refusal and may bring the refused credentials again.
    await this.#refreshing?.catch(() => undefined);
    this.#config = this.#options.load();
    if (this.#session) this.#session.readAt = Number.NEGATIVE_INFINITY;
    await this.#current(signal);
  }

  /**
   * Sends one request; `fence` is asked last, directly before it goes out, and may throw to stop it.
   * The caller owns the answer's body and the deadline in `signal`.
   */
  async send(exchange: Exchange, pool: 'calls' | 'watches', signal: AbortSignal, fence?: () => void): Promise<Answer> {
    const session = await this.#current(signal);
    signal.throwIfAborted();
    fence?.();
    return request(session.server + exchange.path, {
      dispatcher: session[pool],
      method: exchange.method,
      headers: {
        ...session.headers,
        ...(exchange.contentType === undefined ? {} : { 'content-type': exchange.contentType }),
      },
      ...(exchange.body === undefined ? {} : { body: exchange.body }),
      signal,
      // Deadlines are the caller's; a watch is silent for minutes.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  async close(): Promise<void> {
    const session = this.#session;
    this.#session = undefined;
    await Promise.all([session?.calls.destroy(), session?.watches.destroy()]);
  }

  async #current(signal: AbortSignal): Promise<Session> {
    const session = this.#session;
    if (session && this.#clock.monotonic() - session.readAt < AUTH_TTL_MS) return session;
    // One reading serves all callers, so no single caller's abort may end it.
    this.#refreshing ??= withDeadline(new AbortController().signal, AUTH_DEADLINE_MS, () => this.#read()).finally(
      () => {
        this.#refreshing = undefined;
      },
    );
    const refreshed = await this.#refreshing;
    signal.throwIfAborted();
    return refreshed;
  }

  async #read(): Promise<Session> {
    const cluster = this.#config.getCurrentCluster();
    if (!cluster) throw new Error('the kubeconfig has no current cluster; set current-context');
    const options: RequestOptions = { headers: {} };
    await this.#config.applyToHTTPSOptions(options);
    const { agent: _agent, headers, auth, ...tlsOptions } = options;
    const dispatcher = this.#config.createDispatcherOptions(cluster, tlsOptions as AgentOptions);
    const tls = createHash('sha256')
      .update(JSON.stringify([cluster.server, dispatcher]))
      .digest('hex');
    const previous = this.#session;
    const kept = previous?.tls === tls ? previous : undefined;
    const session: Session = {
      server: cluster.server.replace(/\/+$/, ''),
      headers: authHeaders(headers as Record<string, string>, auth, this.#options.userAgent),
      calls: kept?.calls ?? makeDispatcher(dispatcher, this.#options.connections),
      watches: kept?.watches ?? makeDispatcher(dispatcher, this.#options.watches),
      tls,
      readAt: this.#clock.monotonic(),
    };
    this.#session = session;
    if (previous && !kept) retire(previous);
    return session;
  }
}

function authHeaders(
  given: Record<string, string>,
  auth: string | null | undefined,
  userAgent: string,
): Record<string, string> {
  const authorization = auth ? `Basic ${Buffer.from(auth).toString('base64')}` : given.Authorization?.trim();
  if (authorization) holdSecret(authorization.slice(authorization.indexOf(' ') + 1));
  return {
    ...given,
    ...(authorization ? { Authorization: authorization } : {}),
    accept: 'application/json',
    'user-agent': userAgent,
  };
}

function makeDispatcher(options: ReturnType<KubeConfig['createDispatcherOptions']>, connections: number): Dispatcher {
  const pool = { connections, pipelining: 1, allowH2: false, keepAliveTimeout: 30_000 };
  switch (options.type) {
    case 'socks':
      throw new Error('proxy-url with a socks proxy is not supported; use an http(s) proxy in the kubeconfig');
    case 'proxy':
      return new ProxyAgent({ uri: options.uri, requestTls: options.requestTls, ...pool });
    case 'agent':
      return new Agent({ ...pool, connect: { ...options.connect, timeout: CONNECT_TIMEOUT_MS } });
    case 'none':
      return new Agent({ ...pool, connect: { keepAlive: true, timeout: CONNECT_TIMEOUT_MS } });
  }
}

/** Calls in flight finish; the watches of the old certificate end and start again on the new sockets. */
function retire(session: Session): void {
  const ignore = () => undefined;
  session.calls.close().catch(ignore);
  session.watches.destroy().catch(ignore);
}

import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { Agent } from 'undici';
import { parse } from 'yaml';

interface KubeconfigFile {
  'current-context': string;
  contexts: { name: string; context: { cluster: string; user: string } }[];
  clusters: {
    name: string;
    cluster: {
      server: string;
      'certificate-authority'?: string;
      'certificate-authority-data'?: string;
      'insecure-skip-tls-verify'?: boolean;
    };
  }[];
  users: {
    name: string;
    user: {
      token?: string;
      'client-certificate'?: string;
      'client-certificate-data'?: string;
      'client-key'?: string;
      'client-key-data'?: string;
    };
  }[];
}

interface RequestOptions {
  signal?: AbortSignal;
  timeoutMs?: number;
  body?: unknown;
  contentType?: string;
}

/** An answer of the API server, whatever its status. */
export interface Answer {
  status: number;
  text: string;
}

/** A bare connection to an API server, for tests: it knows nothing of `src/`. */
export interface Api extends AsyncDisposable {
  readonly server: string;
  /** PEM of the authority, when the kubeconfig names one. */
  readonly caPem: string | undefined;
  request(method: string, path: string, options?: RequestOptions): Promise<Answer>;
  close(): Promise<void>;
}

const DEFAULT_TIMEOUT_MS = 30_000;

/** A value given inline as base64 or as the name of a file beside the kubeconfig. */
function pem(base: string, data: string | undefined, file: string | undefined): string | undefined {
  if (data !== undefined) return Buffer.from(data, 'base64').toString('utf8');
  return file === undefined ? undefined : readFileSync(resolve(base, file), 'utf8');
}

function named<T extends { name: string }>(list: readonly T[], name: string, what: string): T {
  const found = list.find((entry) => entry.name === name);
  if (!found) throw new Error(`the kubeconfig has no ${what} named ${name}`);
  return found;
}

/** Opens a connection as the current context of a kubeconfig says (token or client certificate). */
export function connect(kubeconfigPath: string): Api {
  const config = parse(readFileSync(kubeconfigPath, 'utf8')) as KubeconfigFile;
  const base = dirname(resolve(kubeconfigPath));
  const { context } = named(config.contexts, config['current-context'], 'context');
  const { cluster } = named(config.clusters, context.cluster, 'cluster');
  const { user } = named(config.users, context.user, 'user');
  const caPem = pem(base, cluster['certificate-authority-data'], cluster['certificate-authority']);
  const agent = new Agent({
    connections: 16,
    // Streams of the runtime's HTTP/2 client break off on a busy machine; the operator speaks HTTP/1.1 as well.
    allowH2: false,
    connect: {
      ca: caPem,
      cert: pem(base, user['client-certificate-data'], user['client-certificate']),
      key: pem(base, user['client-key-data'], user['client-key']),
      rejectUnauthorized: !cluster['insecure-skip-tls-verify'],
    },
  });
  const server = cluster.server.replace(/\/$/, '');
  return {
    server,
    caPem,
    request: async (method, path, options = {}) => {
      const timeout = AbortSignal.timeout(options.timeoutMs ?? DEFAULT_TIMEOUT_MS);
      const { origin, pathname } = new URL(server);
      const { statusCode, body } = await agent.request({
        origin,
        path: `${pathname.replace(/\/$/, '')}${path}`,
        method: method as 'GET',
        headers: {
          accept: 'application/json',
          ...(user.token === undefined ? {} : { authorization: `Bearer ${user.token}` }),
          ...(options.body === undefined ? {} : { 'content-type': options.contentType ?? 'application/json' }),
        },
        body: options.body === undefined ? null : JSON.stringify(options.body),
        signal: options.signal ? AbortSignal.any([options.signal, timeout]) : timeout,
      });
      return { status: statusCode, text: await body.text() };
    },
    close: () => agent.close(),
    [Symbol.asyncDispose]: () => agent.destroy(),
  };
}

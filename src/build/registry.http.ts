/** One HTTP exchange with a registry or its token service; the only file of this room that reaches outside. */
import { rootCertificates } from 'node:tls';
import { Agent, type Dispatcher, request } from 'undici';
import { waiting } from '../base/errors.ts';
import { readCapped } from '../base/http.ts';
import { type RegistryCall, unexpected } from './registry.errors.ts';

/** A request below the registry's address. */
export interface Call extends RegistryCall {
  method: 'GET' | 'HEAD' | 'POST' | 'DELETE';
  /** Path and query below the host. */
  path: string;
  repository: string;
  accept?: string;
  /** Never send the operator's credential, nor a token that was got with it. */
  anonymous?: boolean;
}

/** An answer that was read whole. */
export interface Answer {
  status: number;
  bytes: Buffer;
  /** The body as text; empty when it is long. */
  text: string;
  /** Every value of a header. */
  all(name: string): string[];
}

/** Where the registry is. */
export interface TransportOptions {
  /** Host and port, as in the name of an image. */
  host: string;
  insecure?: boolean | undefined;
  ca?: string | undefined;
  dispatcher?: Dispatcher | undefined;
}

const MAX_REDIRECTS = 3;
const MAX_SMALL_BODY = 64 * 1024;
/** Largest manifest, which is the only long answer there is. */
const MAX_BODY = 4 * 1024 * 1024;

const HUB = new Set(['docker.io', 'index.docker.io']);

function addressOf({ host, insecure }: TransportOptions): URL {
  const url = URL.parse(`${insecure ? 'http' : 'https'}://${HUB.has(host) ? 'registry-1.docker.io' : host}`);
  if (url?.pathname !== '/' || url.username !== '' || url.search !== '' || url.hash !== '') {
    throw waiting(
      'RegistryConfigInvalid',
      `${JSON.stringify(host)} is no registry host such as registry:5000; correct registry.host in the build settings`,
    );
  }
  return url;
}

/** Sends requests; caps every body, follows the redirects of reads alone and never takes a credential along. */
export class RegistryTransport {
  /** Scheme, host and port. */
  readonly base: URL;
  readonly #insecure: boolean;
  readonly #dispatcher: Dispatcher;
  readonly #owned: boolean;

  /** Throws Waiting `RegistryConfigInvalid` when the host is none. */
  constructor(options: TransportOptions) {
    this.base = addressOf(options);
    this.#insecure = options.insecure ?? false;
    this.#owned = options.dispatcher === undefined;
    const connect = options.ca === undefined ? {} : { connect: { ca: [...rootCertificates, options.ca] } };
    this.#dispatcher = options.dispatcher ?? new Agent({ connections: 8, ...connect });
  }

  /** Whether a URL may be asked: https, or http where the registry itself speaks it. */
  allows(url: URL): boolean {
    return url.protocol === 'https:' || (this.#insecure && url.protocol === 'http:');
  }

  /** Sends a call, with the credential for the registry's own address alone. */
  async send(call: Call, authorization: string | undefined, signal: AbortSignal): Promise<Answer> {
    let url = new URL(call.path, this.base);
    for (let hops = 0; hops <= MAX_REDIRECTS; hops++) {
      const headers: Record<string, string> = {};
      if (call.accept) headers.accept = call.accept;
      if (authorization && url.origin === this.base.origin) headers.authorization = authorization;
      const answer = await this.exchange(call.method, url, headers, signal);
      if (answer.status < 300 || answer.status >= 400) return answer;
      url = this.#next(call, url, answer);
    }
    throw unexpected(call, 'redirects in a circle');
  }

  /** Sends one request to any allowed URL. */
  async exchange(
    method: Call['method'],
    url: URL,
    headers: Record<string, string>,
    signal: AbortSignal,
  ): Promise<Answer> {
    const response = await request(url, {
      method,
      headers: { 'user-agent': 'skill-operator', ...headers },
      signal,
      dispatcher: this.#dispatcher,
    });
    const cap = response.statusCode === 200 ? MAX_BODY : MAX_SMALL_BODY;
    const bytes = await readCapped(response.body, cap, () => new Error(`the answer is longer than ${cap} bytes`));
    return {
      status: response.statusCode,
      bytes,
      text: bytes.length <= MAX_SMALL_BODY ? bytes.toString('utf8') : '',
      all: (name) => [response.headers[name] ?? []].flat(),
    };
  }

  async close(): Promise<void> {
    if (this.#owned) await this.#dispatcher.close();
  }

  #next(call: Call, from: URL, answer: Answer): URL {
    const next = URL.parse(answer.all('location')[0] ?? '', from.href);
    const reads = call.method === 'GET' || call.method === 'HEAD';
    if (reads && next && this.allows(next)) return next;
    throw unexpected(call, `redirects (${answer.status})`);
  }
}

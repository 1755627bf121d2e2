/** The image registry over HTTP; the only file of this room that reaches outside. Source: OCI distribution-spec 1.1. */
import { hash } from 'node:crypto';
import { rootCertificates } from 'node:tls';
import { Agent, type Dispatcher, request } from 'undici';
import { type Clock, systemClock } from '../base/clock.ts';
import { withDeadline } from '../base/deadline.ts';
import { stalled, waiting } from '../base/errors.ts';
import { holdSecret } from '../base/redact.ts';
import { type Challenge, parseChallenge } from './challenge.ts';
import type { RegistryCredential } from './dockerconfig.ts';
import {
  IMAGE_TYPES,
  INDEX_TYPES,
  imageSize,
  MAX_MANIFEST_BYTES,
  ManifestError,
  parseImageManifest,
} from './ocimanifest.ts';
import type { Registry, RegistryImage } from './port.ts';
import { errorOf, type RegistryCall, refused, unanswered, unexpected } from './registry.errors.ts';

/** How to reach the registry. */
export interface RegistryConnection {
  /** Host and port, as in the name of an image. */
  host: string;
  /** Plain HTTP. */
  insecure?: boolean | undefined;
  /** PEM text, trusted beside the system's authorities. */
  ca?: string | undefined;
  /** Reads the operator's credential on use; undefined: without one. `hosts`: the only hosts that it may be sent to. */
  credential?:
    | ((
        repository: string,
        signal: AbortSignal,
      ) => Promise<(RegistryCredential & { hosts?: readonly string[] | undefined }) | undefined>)
    | undefined;
  /** A pool of its own, with a proxy for example; default: one with `ca`. */
  dispatcher?: Dispatcher | undefined;
  /** Deadline of one call in milliseconds, tokens and redirects included; default 20,000. */
  timeoutMs?: number | undefined;
  clock?: Clock | undefined;
}

interface Call extends RegistryCall {
  method: 'GET' | 'HEAD' | 'POST' | 'DELETE';
  /** Path and query below the host. */
  path: string;
  repository: string;
  accept?: string;
  /** Never send the operator's credential, nor a token that was got with it. */
  anonymous?: boolean;
}

interface Answer {
  status: number;
  bytes: Buffer;
  text: string;
  header(name: string): string | undefined;
  all(name: string): string[];
}

const DEFAULT_TIMEOUT_MS = 20_000;
const MAX_REDIRECTS = 3;
const MAX_SMALL_BODY = 64 * 1024;
const ACCEPT = [...IMAGE_TYPES, ...INDEX_TYPES].join(', ');
/** What a token lives when the registry does not say, and how much of it is left unused. */
const DEFAULT_TOKEN_MS = 60_000;
const TOKEN_MARGIN_MS = 10_000;
const BASIC_MS = 300_000;
/** Tokens kept at once: one per repository and method. */
const MAX_TOKENS = 1000;

/** `Registry` over the distribution API, with token and basic authentication. */
export class HttpRegistry implements Registry {
  readonly host: string;
  readonly #connection: RegistryConnection;
  readonly #base: URL;
  readonly #dispatcher: Dispatcher;
  readonly #clock: Clock;
  readonly #tokens = new Map<string, { header: string; until: number }>();

  /** Throws Waiting `RegistryConfigInvalid` when the host is none. */
  constructor(connection: RegistryConnection) {
    this.#connection = connection;
    this.host = connection.host;
    const address = ['docker.io', 'index.docker.io'].includes(this.host) ? 'registry-1.docker.io' : this.host;
    const base = URL.parse(`${connection.insecure ? 'http' : 'https'}://${address}`);
    if (!base || base.pathname !== '/' || base.username !== '' || base.search !== '') {
      throw waiting('RegistryConfigInvalid', `${JSON.stringify(this.host)} is no registry host such as registry:5000`);
    }
    this.#base = base;
    const ca = connection.ca === undefined ? undefined : [...rootCertificates, connection.ca];
    this.#dispatcher = connection.dispatcher ?? new Agent({ connections: 8, ...(ca ? { connect: { ca } } : {}) });
    this.#clock = connection.clock ?? systemClock;
  }

  async ping(signal: AbortSignal): Promise<void> {
    const call = this.#call('GET', '', '/v2/', 'a check of the address');
    const answer = await this.#send(call, signal);
    if (answer.status !== 200) throw this.#refused(call, answer);
  }

  async image(repository: string, reference: string, signal: AbortSignal): Promise<RegistryImage | undefined> {
    const call = this.#manifestCall('GET', repository, reference);
    const answer = await this.#send(call, signal);
    if (answer.status === 404) return undefined;
    if (answer.status !== 200) throw this.#refused(call, answer);
    const digest = `sha256:${hash('sha256', answer.bytes)}`;
    if (reference.startsWith('sha256:') && reference !== digest) {
      throw unexpected(call, `sent other bytes than those of ${reference}`);
    }
    try {
      return { digest, size: imageSize(parseImageManifest(answer.bytes), answer.bytes.length) };
    } catch (error) {
      if (!(error instanceof ManifestError)) throw error;
      throw stalled('ImageInvalid', `${this.host}/${repository}@${digest} ${error.message}; build it again`);
    }
  }

  async has(repository: string, digest: string, signal: AbortSignal): Promise<boolean> {
    const call = this.#manifestCall('HEAD', repository, digest);
    const answer = await this.#send(call, signal);
    if (answer.status !== 200 && answer.status !== 404) throw this.#refused(call, answer);
    return answer.status === 200;
  }

  async deleteImage(repository: string, digest: string, signal: AbortSignal) {
    if (!digest.startsWith('sha256:')) {
      throw stalled('InternalError', `an image is deleted by its digest alone, not by ${JSON.stringify(digest)}`);
    }
    const call = this.#manifestCall('DELETE', repository, digest);
    const answer = await this.#send(call, signal);
    if ([200, 202, 204].includes(answer.status)) return 'deleted' as const;
    if (answer.status === 404) return 'absent' as const;
    const refuses = answer.status === 405 || (answer.status === 400 && errorOf(answer.text).code === 'UNSUPPORTED');
    if (refuses) return 'unsupported' as const;
    throw this.#refused(call, answer);
  }

  async acceptsAnonymousWrites(repository: string, signal: AbortSignal): Promise<boolean> {
    const path = `/v2/${repository}/blobs/uploads/`;
    const call = { ...this.#call('POST', repository, path, 'a push without credential'), anonymous: true };
    const answer = await this.#send(call, signal);
    if (answer.status === 401 || answer.status === 403) return false;
    if (answer.status !== 202 && answer.status !== 201) throw this.#refused(call, answer);
    await this.#cancelUpload(call, answer.header('location'), signal);
    return true;
  }

  async close(): Promise<void> {
    if (!this.#connection.dispatcher) await this.#dispatcher.close();
  }

  /** Leaves no upload behind; one that stays is harmless and collected by the registry. */
  async #cancelUpload(call: Call, location: string | undefined, signal: AbortSignal): Promise<void> {
    const url = location === undefined ? null : URL.parse(location, this.#base);
    if (!url || url.origin !== this.#base.origin) return;
    try {
      await this.#send({ ...call, method: 'DELETE', path: url.pathname + url.search }, signal);
    } catch (error) {
      if (signal.aborted) throw error;
    }
  }

  #call(method: Call['method'], repository: string, path: string, action: string): Call {
    return { host: this.host, action, method, path, repository };
  }

  #manifestCall(method: Call['method'], repository: string, reference: string): Call {
    const path = `/v2/${repository}/manifests/${encodeURIComponent(reference)}`;
    const verb = method === 'DELETE' ? 'deleting' : 'reading';
    return { ...this.#call(method, repository, path, `${verb} ${repository}@${reference}`), accept: ACCEPT };
  }

  #refused(call: Call, answer: Answer) {
    const { status, text } = answer;
    return refused(call, { status, text, retryAfter: answer.header('retry-after') }, this.#clock.now());
  }

  /** One call with everything that belongs to it under one deadline. */
  async #send(call: Call, signal: AbortSignal): Promise<Answer> {
    try {
      return await withDeadline(signal, this.#connection.timeoutMs ?? DEFAULT_TIMEOUT_MS, (bounded) =>
        this.#authorized(call, bounded),
      );
    } catch (error) {
      signal.throwIfAborted();
      throw unanswered(call, error);
    }
  }

  /** Tries with what is known, then answers the challenge once. */
  async #authorized(call: Call, signal: AbortSignal): Promise<Answer> {
    const key = `${call.method} ${call.repository} ${call.anonymous ?? false}`;
    const known = this.#tokens.get(key);
    const usable = known && known.until > this.#clock.now() ? known.header : undefined;
    const first = await this.#follow(call, usable, signal);
    if (first.status !== 401) return first;
    this.#tokens.delete(key);
    const challenge = parseChallenge(first.all('www-authenticate'));
    const grant = challenge && (await this.#grant(challenge, call, signal));
    if (!grant) return first;
    const second = await this.#follow(call, grant.header, signal);
    if (second.status === 401) return second;
    if (this.#tokens.size >= MAX_TOKENS) this.#tokens.clear();
    this.#tokens.set(key, grant);
    return second;
  }

  async #grant(challenge: Challenge, call: Call, signal: AbortSignal) {
    const credential = call.anonymous ? undefined : await this.#connection.credential?.(call.repository, signal);
    if (credential) holdSecret(credential.password);
    const basic =
      credential && `Basic ${Buffer.from(`${credential.username}:${credential.password}`).toString('base64')}`;
    const mayGoTo = (url: URL) => {
      if (!credential?.hosts || credential.hosts.includes(url.hostname) || credential.hosts.includes(url.host)) return;
      throw waiting(
        'SecretHostNotAllowed',
        `the registry Secret may not be sent to ${url.host}: its annotation skills.tfrobot.io/hosts names other hosts; add ${url.host} there`,
      );
    };
    if (challenge.scheme === 'basic') {
      if (!basic) return undefined;
      mayGoTo(this.#base);
      return { header: basic, until: this.#clock.now() + BASIC_MS };
    }
    const url = URL.parse(challenge.realm, this.#base);
    if (!url || (url.protocol !== 'https:' && !(this.#connection.insecure && url.protocol === 'http:'))) {
      throw unexpected(call, 'names a token service that is no https URL');
    }
    if (basic) mayGoTo(url);
    if (challenge.service) url.searchParams.set('service', challenge.service);
    for (const scope of challenge.scope?.split(' ') ?? []) url.searchParams.append('scope', scope);
    return await this.#token(url, basic, call, signal);
  }

  async #token(url: URL, basic: string | undefined, call: Call, signal: AbortSignal) {
    const answer = await this.#exchange('GET', url, { ...(basic ? { authorization: basic } : {}) }, signal);
    const tokenCall = { ...call, action: `a token for ${call.action}` };
    if (call.anonymous && [400, 401, 403].includes(answer.status)) return undefined;
    if (answer.status !== 200) throw this.#refused({ ...tokenCall, host: url.host }, answer);
    const { token, access_token, expires_in } = JSON.parse(answer.text || '{}') as Record<string, unknown>;
    const value = typeof token === 'string' ? token : access_token;
    if (typeof value !== 'string' || !/^[\x21-\x7e]+$/.test(value))
      throw unexpected(tokenCall, 'gives no usable token');
    holdSecret(value);
    const lifeMs = typeof expires_in === 'number' ? expires_in * 1000 : DEFAULT_TOKEN_MS;
    return { header: `Bearer ${value}`, until: this.#clock.now() + lifeMs - TOKEN_MARGIN_MS };
  }

  /** Follows the redirects of a read; the credential stays with the registry's own address. */
  async #follow(call: Call, authorization: string | undefined, signal: AbortSignal): Promise<Answer> {
    let url = new URL(call.path, this.#base);
    for (let hops = 0; ; hops++) {
      const headers: Record<string, string> = {};
      if (call.accept) headers.accept = call.accept;
      if (authorization && url.origin === this.#base.origin) headers.authorization = authorization;
      const answer = await this.#exchange(call.method, url, headers, signal);
      if (answer.status < 300 || answer.status >= 400) return answer;
      const next = URL.parse(answer.header('location') ?? '', url);
      const reads = call.method === 'GET' || call.method === 'HEAD';
      const plain = next?.protocol === 'http:' && this.#connection.insecure;
      if (!reads || !next || hops >= MAX_REDIRECTS || (next.protocol !== 'https:' && !plain)) {
        throw unexpected(call, `redirects (${answer.status})`);
      }
      url = next;
    }
  }

  async #exchange(
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
    const limit = response.statusCode === 200 && headers.accept ? MAX_MANIFEST_BYTES : MAX_SMALL_BODY;
    const bytes = await readCapped(response.body, limit);
    const all = (name: string) => [response.headers[name] ?? []].flat();
    return {
      status: response.statusCode,
      bytes,
      text: bytes.length <= MAX_SMALL_BODY ? bytes.toString('utf8') : '',
      header: (name) => all(name)[0],
      all,
    };
  }
}

async function readCapped(body: AsyncIterable<Buffer>, limit: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > limit) throw new Error(`the answer is longer than ${limit} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

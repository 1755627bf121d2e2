/** The image registry over the distribution API. Source: OCI distribution-spec 1.1. */
import { hash } from 'node:crypto';
import type { Dispatcher } from 'undici';
import { type Clock, systemClock } from '../base/clock.ts';
import { withDeadline } from '../base/deadline.ts';
import { stalled } from '../base/errors.ts';
import { IMAGE_TYPES, INDEX_TYPES, imageSize, ManifestError, parseImageManifest } from './ocimanifest.ts';
import type { Registry, RegistryImage } from './port.ts';
import { type ReadCredential, RegistryAuth } from './registry.auth.ts';
import { errorOf, refused, unanswered, unexpected } from './registry.errors.ts';
import { type Answer, type Call, RegistryTransport } from './registry.http.ts';
import { isDigest } from './result.ts';

/** How to reach the registry. */
export interface RegistryConnection {
  /** Host and port, as in the name of an image. */
  host: string;
  /** Plain HTTP. */
  insecure?: boolean | undefined;
  /** PEM text, trusted beside the system's authorities. */
  ca?: string | undefined;
  /** undefined: a registry without authentication. */
  credential?: ReadCredential | undefined;
  /** A pool of its own, with a proxy for example; default: one with `ca`. */
  dispatcher?: Dispatcher | undefined;
  /** Deadline of one call in milliseconds, tokens and redirects included; default 20,000. */
  timeoutMs?: number | undefined;
  clock?: Clock | undefined;
}

const DEFAULT_TIMEOUT_MS = 20_000;
const REPOSITORY = /^[a-z0-9]+([._/-]+[a-z0-9]+)*$/;
/** A digest or a tag. */
const REFERENCE = /^(sha256:[0-9a-f]{64}|\w[\w.-]{0,127})$/;
/** Tags of one page, and pages at most. */
const PAGE = 1000;
const MAX_PAGES = 20;
/** A registry answers 404 for a manifest that it has and the request does not accept. */
const ACCEPT = [...IMAGE_TYPES, ...INDEX_TYPES].join(', ');

/** `Registry` over HTTP, with token and basic authentication. */
export class HttpRegistry implements Registry {
  readonly host: string;
  readonly #transport: RegistryTransport;
  readonly #auth: RegistryAuth;
  readonly #timeoutMs: number;
  readonly #clock: Clock;

  /** Throws Waiting `RegistryConfigInvalid` when the host is none. */
  constructor(connection: RegistryConnection) {
    this.host = connection.host;
    this.#clock = connection.clock ?? systemClock;
    this.#timeoutMs = connection.timeoutMs ?? DEFAULT_TIMEOUT_MS;
    this.#transport = new RegistryTransport(connection);
    this.#auth = new RegistryAuth(this.#transport, connection.credential, this.#clock);
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

  async tags(repository: string, signal: AbortSignal): Promise<string[]> {
    const found: string[] = [];
    let path: string | undefined = `/v2/${repository}/tags/list?n=${PAGE}`;
    for (let page = 0; path !== undefined && page < MAX_PAGES; page++) {
      const call = this.#call('GET', repository, path, `listing the tags of ${repository}`);
      const answer = await this.#send(call, signal);
      if (answer.status === 404) return found;
      if (answer.status !== 200) throw this.#refused(call, answer);
      found.push(...tagsOf(answer.bytes));
      path = nextPage(answer.all('link')[0], this.#transport.base);
    }
    return found;
  }

  async deleteImage(
    repository: string,
    digest: string,
    signal: AbortSignal,
  ): Promise<'deleted' | 'absent' | 'unsupported'> {
    if (!isDigest(digest)) {
      throw stalled('InternalError', `an image is deleted by its digest alone, not by ${JSON.stringify(digest)}`);
    }
    const call = this.#manifestCall('DELETE', repository, digest);
    const answer = await this.#send(call, signal);
    if ([200, 202, 204].includes(answer.status)) return 'deleted';
    if (answer.status === 404) return 'absent';
    const refuses = answer.status === 405 || (answer.status === 400 && errorOf(answer.text).code === 'UNSUPPORTED');
    if (refuses) return 'unsupported';
    throw this.#refused(call, answer);
  }

  async acceptsAnonymousWrites(repository: string, signal: AbortSignal): Promise<boolean> {
    const path = `/v2/${repository}/blobs/uploads/`;
    const call = { ...this.#call('POST', repository, path, 'a push without credential'), anonymous: true };
    const answer = await this.#send(call, signal);
    if (answer.status === 401 || answer.status === 403) return false;
    if (answer.status !== 202 && answer.status !== 201) throw this.#refused(call, answer);
    await this.#cancelUpload(call, answer.all('location')[0], signal);
    return true;
  }

  close(): Promise<void> {
    return this.#transport.close();
  }

  /** An upload that cannot be cancelled stays harmless: registries collect those that nobody ends. */
  async #cancelUpload(call: Call, location: string | undefined, signal: AbortSignal): Promise<void> {
    const { base } = this.#transport;
    const url = location === undefined ? null : URL.parse(location, base.href);
    if (url?.origin !== base.origin) return;
    try {
      await this.#send({ ...call, method: 'DELETE', path: url.pathname + url.search }, signal);
    } catch {
      signal.throwIfAborted();
    }
  }

  #call(method: Call['method'], repository: string, path: string, action: string): Call {
    return { host: this.host, action, method, path, repository };
  }

  #manifestCall(method: Call['method'], repository: string, reference: string): Call {
    if (!REPOSITORY.test(repository) || !REFERENCE.test(reference)) {
      throw stalled('InternalError', `${JSON.stringify(`${repository}@${reference}`)} cannot be the name of an image`);
    }
    const path = `/v2/${repository}/manifests/${reference}`;
    const verb = method === 'DELETE' ? 'deleting' : 'reading';
    const name = `${repository}${reference.includes(':') ? '@' : ':'}${reference}`;
    return { ...this.#call(method, repository, path, `${verb} ${name}`), accept: ACCEPT };
  }

  #refused(call: Call, answer: Answer) {
    const [retryAfter] = answer.all('retry-after');
    return refused(call, { status: answer.status, text: answer.text, retryAfter }, this.#clock.now());
  }

  /** One call, with everything that belongs to it, under one deadline. */
  async #send(call: Call, signal: AbortSignal): Promise<Answer> {
    try {
      return await withDeadline(signal, this.#timeoutMs, (bounded) => this.#auth.send(call, bounded));
    } catch (error) {
      signal.throwIfAborted();
      throw unanswered(call, error);
    }
  }
}

/** `{"name": …, "tags": [ … ] or null}`; anything else has none. */
function tagsOf(bytes: Buffer): string[] {
  try {
    const { tags } = JSON.parse(bytes.toString('utf8')) as { tags?: unknown };
    return Array.isArray(tags) ? tags.filter((tag) => typeof tag === 'string' && REFERENCE.test(tag)) : [];
  } catch {
    return [];
  }
}

/** Path of the next page out of a Link header, on the registry itself. */
function nextPage(link: string | undefined, base: URL): string | undefined {
  const target = /^\s*<([^>]+)>\s*;\s*rel="?next"?/.exec(link ?? '')?.[1];
  const url = target === undefined ? null : URL.parse(target, base.href);
  return url?.origin === base.origin ? url.pathname + url.search : undefined;
}

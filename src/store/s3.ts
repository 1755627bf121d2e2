/** The object store of production: any S3 server, spoken to with the minio client, which no other file imports. */
import type { IncomingMessage } from 'node:http';
import { Client } from 'minio';
import { type Clock, systemClock } from '../base/clock.ts';
import { withDeadline } from '../base/deadline.ts';
import { waiting } from '../base/errors.ts';
import { type Observe, unobserved } from '../base/observe.ts';
import { holdSecret } from '../base/redact.ts';
import { putUnsigned } from './anonymous.ts';
import { sha256OfLarge } from './digest.ts';
import { Gate } from './gate.ts';
import type { ObjectInfo, ObjectStore } from './port.ts';
import { isMissingKey, isTransient, storeError } from './s3.errors.ts';
import { parseSettings, type S3Settings } from './s3.settings.ts';
import { type CallContext, CallTransport, MAX_SOCKETS } from './transport.ts';

type Kind = keyof ObjectStore['requests'];

const MIB = 1024 * 1024;
const DEFAULT_TIMEOUT_MS = 15_000;
const MS_PER_MIB = 1_000;
/** Pause before the one repetition of a call, so that a server that restarts is not hit at once. */
const REPEAT_AFTER_MS = 100;
/** Cap of a successful answer that is no object: a page of keys is the largest. */
const MAX_XML = 8 * MIB;
/** A page of 1000, the protocol's limit, takes 60 ms to parse (test/bench, change); this one 15 ms, within one slice (I8). */
const KEYS_PER_PAGE = 250;
const asBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

async function collect(stream: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** Options of one call. */
interface Call {
  kind: Kind;
  key: string;
  /** Bytes sent or at most received: they lengthen the deadline. */
  bytes: number;
  maxBody?: number;
}

/** `ObjectStore` on an S3 server: path style, at most 16 sockets, one repetition after a dying socket or a busy server. */
export class S3ObjectStore implements ObjectStore {
  readonly requests: Record<Kind, number> = { head: 0, get: 0, put: 0, list: 0, delete: 0 };
  readonly #client: Client;
  readonly #transport: CallTransport;
  readonly #gate = new Gate(MAX_SOCKETS);
  readonly #settings: S3Settings;
  readonly #endpoint: string;
  readonly #clock: Clock;
  readonly #observe: Observe;

  /** Opens no connection. Throws `StoreConfigInvalid` for an endpoint or bucket name that cannot be. */
  constructor(settings: S3Settings, clock: Clock = systemClock, observe: Observe = unobserved) {
    holdSecret(settings.secretKey);
    const { origin, host, port, tls } = parseSettings(settings);
    this.#settings = settings;
    this.#endpoint = origin;
    this.#clock = clock;
    this.#observe = observe;
    this.#transport = new CallTransport({ tls, ca: settings.ca });
    this.#client = new Client({
      endPoint: host,
      port,
      useSSL: tls,
      region: settings.region,
      accessKey: settings.accessKey,
      secretKey: settings.secretKey,
      pathStyle: true,
      transport: this.#transport as never,
      retryOptions: { disableRetry: true },
    });
    // Signed payloads over TLS too: the server checks the sha256, and the client's MD5 is not needed.
    this.#client.enableSHA256 = true;
  }

  async head(key: string, signal: AbortSignal): Promise<ObjectInfo | undefined> {
    return this.#orMissing({ kind: 'head', key, bytes: 0 }, signal, async () => {
      const stat = await this.#client.statObject(this.#settings.bucket, key);
      return { key, size: stat.size, lastModified: stat.lastModified.getTime() };
    });
  }

  async get(
    key: string,
    options: { maxBytes: number; range?: { start: number; end: number } },
    signal: AbortSignal,
  ): Promise<Uint8Array | undefined> {
    const { maxBytes, range } = options;
    const { bucket } = this.#settings;
    return this.#orMissing({ kind: 'get', key, bytes: maxBytes, maxBody: maxBytes }, signal, async () => {
      const stream = range
        ? await this.#client.getPartialObject(bucket, key, range.start, range.end - range.start + 1)
        : await this.#client.getObject(bucket, key);
      return collect(stream);
    });
  }

  async putIfAbsent(
    key: string,
    bytes: Uint8Array,
    contentType: string,
    signal: AbortSignal,
  ): Promise<'created' | 'exists'> {
    return this.#call({ kind: 'put', key, bytes: bytes.length }, signal, async (call) => {
      try {
        await this.#send(key, bytes, { 'content-type': contentType, 'if-none-match': '*' });
        return 'created';
      } catch (error) {
        if (call.status === 412) return 'exists';
        throw error;
      }
    });
  }

  async put(key: string, bytes: Uint8Array, contentType: string, signal: AbortSignal): Promise<void> {
    const call: Call = { kind: 'put', key, bytes: bytes.length };
    await this.#call(call, signal, () => this.#send(key, bytes, { 'content-type': contentType }));
  }

  async *list(prefix: string, signal: AbortSignal): AsyncIterable<ObjectInfo[]> {
    let token: string | undefined = '';
    do {
      const page: Awaited<ReturnType<Client['listObjectsV2Query']>> = await this.#page(
        prefix,
        token,
        KEYS_PER_PAGE,
        signal,
      );
      const infos = page.objects.map((o) => ({
        key: String(o.name),
        size: o.size,
        lastModified: o.lastModified?.getTime() ?? 0,
      }));
      if (infos.length > 0) yield infos;
      token = page.isTruncated ? String(page.nextContinuationToken) : undefined;
    } while (token);
  }

  async delete(key: string, signal: AbortSignal): Promise<void> {
    await this.#orMissing({ kind: 'delete', key, bytes: 0 }, signal, () =>
      this.#client.removeObject(this.#settings.bucket, key),
    );
  }

  async presignGet(key: string, seconds: number): Promise<string> {
    return this.#client.presignedGetObject(this.#settings.bucket, key, seconds);
  }

  async check(signal: AbortSignal): Promise<void> {
    // A list, not a HEAD of the bucket: only an answer with a body says which part of the settings is wrong.
    await this.#page('', '', 1, signal);
  }

  /** Whether somebody without a key could write into the bucket; leaves nothing behind. */
  async acceptsAnonymousWrites(signal: AbortSignal): Promise<boolean> {
    const { bucket, ca } = this.#settings;
    const { status, key } = await this.#call({ kind: 'put', key: 'without a key', bytes: 0 }, signal, (context) =>
      putUnsigned(parseSettings(this.#settings), bucket, ca, context.signal),
    );
    if (status < 200 || status > 299) return false;
    await this.delete(key, signal);
    return true;
  }

  /** Closes the sockets; calls under way fail. */
  close(): void {
    this.#transport.close();
  }

  #page(prefix: string, token: string, keys: number, signal: AbortSignal) {
    return this.#call({ kind: 'list', key: prefix, bytes: 0 }, signal, () =>
      this.#client.listObjectsV2Query(this.#settings.bucket, prefix, token, '', keys, ''),
    );
  }

  /** One PUT with a body hashed once; the client's own putObject copies the body through a stream first. */
  async #send(key: string, bytes: Uint8Array, headers: Record<string, string>): Promise<void> {
    const body = asBuffer(bytes);
    const response: IncomingMessage = await this.#client.makeRequestStreamAsync(
      {
        method: 'PUT',
        bucketName: this.#settings.bucket,
        objectName: key,
        headers: { ...headers, 'content-length': String(body.length) },
      },
      body,
      await sha256OfLarge(body),
      [200],
      '',
    );
    await collect(response);
  }

  async #orMissing<T>(call: Call, signal: AbortSignal, fn: () => Promise<T>): Promise<T | undefined> {
    return this.#call(call, signal, async (context) => {
      try {
        return await fn();
      } catch (error) {
        if (isMissingKey(error, context.status, call.kind)) return undefined;
        throw error;
      }
    });
  }

  /** The frame of every call: a slot, a deadline, one repetition, a PolicyError. */
  async #call<T>(call: Call, signal: AbortSignal, fn: (context: CallContext) => Promise<T>): Promise<T> {
    const ms = (this.#settings.timeoutMs ?? DEFAULT_TIMEOUT_MS) + Math.ceil(call.bytes / MIB) * MS_PER_MIB;
    const gated = () => this.#gate.run(signal, () => this.#bounded(call, ms, signal, fn));
    return this.#observe({ system: 'store', name: call.kind }, gated);
  }

  async #bounded<T>(call: Call, ms: number, signal: AbortSignal, fn: (context: CallContext) => Promise<T>): Promise<T> {
    const context: Partial<CallContext> = {};
    try {
      return await withDeadline(signal, ms, (inner) => this.#attempts(call, context, inner, fn));
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      throw this.#named(call, context, error);
    }
  }

  async #attempts<T>(
    call: Call,
    shared: Partial<CallContext>,
    signal: AbortSignal,
    fn: (context: CallContext) => Promise<T>,
  ): Promise<T> {
    const context: CallContext = Object.assign(shared, {
      signal,
      maxBody: call.maxBody ?? MAX_XML,
      onRequest: () => {
        context.status = undefined;
        this.requests[call.kind]++;
      },
    });
    try {
      return await this.#transport.run(context, () => fn(context));
    } catch (error) {
      if (signal.aborted || !isTransient(error, context.status)) throw error;
      await this.#clock.sleep(REPEAT_AFTER_MS, signal);
      return await this.#transport.run(context, () => fn(context));
    }
  }

  #named(call: Call, context: Partial<CallContext>, error: unknown): Error {
    if (context.overflow) {
      return waiting(
        'StoreCorrupt',
        `${call.key} in bucket ${this.#settings.bucket} is longer than ${call.maxBody ?? MAX_XML} bytes, more than was written; annotate the Skill with skills.tfrobot.io/requestedAt to store it again`,
      );
    }
    return storeError({
      error,
      action: `${call.kind} ${call.key || '/'}`,
      status: context.status,
      endpoint: this.#endpoint,
      bucket: this.#settings.bucket,
    });
  }
}

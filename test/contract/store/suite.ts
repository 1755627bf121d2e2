import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { redact } from '../../../src/base/redact.ts';
import type { ObjectInfo } from '../../../src/store/port.ts';
import type { S3Settings } from '../../../src/store/s3.settings.ts';
import { S3ObjectStore } from '../../../src/store/s3.ts';
import { createAuthority, createServerCert } from '../../cluster/pki.ts';
import { eventually } from '../../support/eventually.ts';
import { deadPort, Wire } from './wire.ts';

const bytes = (text: string): Uint8Array => Buffer.from(text);
const text = (got: Uint8Array | undefined): string | undefined => got && Buffer.from(got).toString();
const MIB = 1024 * 1024;

/** What every server behind `ObjectStore` must do. `connect` gives an address with a bucket that exists. */
export function objectStoreContract(server: string, connect: () => Promise<S3Settings>): void {
  describe(`ObjectStore on ${server}`, () => {
    let settings: S3Settings;
    let store: S3ObjectStore;
    const signal = new AbortController().signal;
    const root = `v1/contract-${randomUUID()}`;
    const key = (name: string) => `${root}/${name}`;
    const open = (changes: Partial<S3Settings> = {}) => new S3ObjectStore({ ...settings, ...changes });

    beforeAll(async () => {
      settings = await connect();
      store = open();
    });
    afterAll(() => store?.close());

    describe('objects', () => {
      test('what was put comes back with its size and the time of the store', async () => {
        await store.put(key('a'), bytes('hello'), 'text/plain', signal);
        expect(text(await store.get(key('a'), { maxBytes: 5 }, signal))).toBe('hello');
        const info = (await store.head(key('a'), signal)) as ObjectInfo;
        expect(info).toMatchObject({ key: key('a'), size: 5 });
        expect(Math.abs(info.lastModified - Date.now())).toBeLessThan(60_000);
      });

      test('an empty object and one of 60 MiB come back byte for byte', async () => {
        await store.put(key('empty'), new Uint8Array(0), 'text/plain', signal);
        expect((await store.get(key('empty'), { maxBytes: 1 }, signal))?.length).toBe(0);
        const large = Buffer.alloc(60 * MIB, 'skill-operator ');
        expect(await store.putIfAbsent(key('large'), large, 'application/x-tar', signal)).toBe('created');
        const got = await store.get(key('large'), { maxBytes: large.length }, signal);
        expect(got && Buffer.compare(got, large)).toBe(0);
        await store.delete(key('large'), signal);
      });

      test('a view into a larger buffer stores its own bytes only', async () => {
        await store.put(key('view'), bytes('xxhelloxx').subarray(2, 7), 'text/plain', signal);
        expect(text(await store.get(key('view'), { maxBytes: 5 }, signal))).toBe('hello');
      });

      test('a missing key is undefined for head and get, and no error for delete', async () => {
        expect(await store.head(key('none'), signal)).toBeUndefined();
        expect(await store.get(key('none'), { maxBytes: 1 }, signal)).toBeUndefined();
        await store.delete(key('none'), signal);
      });

      test('a deleted key is missing', async () => {
        await store.put(key('gone'), bytes('x'), 'text/plain', signal);
        await store.delete(key('gone'), signal);
        expect(await store.head(key('gone'), signal)).toBeUndefined();
      });

      test('more bytes than allowed are StoreCorrupt, and the socket is not kept reading', async () => {
        await store.put(key('long'), Buffer.alloc(MIB), 'text/plain', signal);
        await expect(store.get(key('long'), { maxBytes: MIB - 1 }, signal)).rejects.toMatchObject({
          reason: 'StoreCorrupt',
        });
        expect((await store.get(key('long'), { maxBytes: MIB }, signal))?.length).toBe(MIB);
      });

      test('a range gives exactly its bytes; one behind the end is StoreCorrupt', async () => {
        await store.put(key('range'), bytes('0123456789'), 'text/plain', signal);
        const range = (start: number, end: number) =>
          store.get(key('range'), { maxBytes: 10, range: { start, end } }, signal);
        expect(text(await range(2, 4))).toBe('234');
        expect(text(await range(0, 0))).toBe('0');
        expect(text(await range(8, 20))).toBe('89');
        await expect(range(10, 12)).rejects.toMatchObject({ reason: 'StoreCorrupt' });
      });
    });

    describe('putIfAbsent', () => {
      test('writes once and leaves what is there', async () => {
        expect(await store.putIfAbsent(key('once'), bytes('first'), 'text/plain', signal)).toBe('created');
        expect(await store.putIfAbsent(key('once'), bytes('second'), 'text/plain', signal)).toBe('exists');
        expect(text(await store.get(key('once'), { maxBytes: 10 }, signal))).toBe('first');
      });

      test('of writers at the same time exactly one creates, and its bytes stay', async () => {
        for (let round = 0; round < 3; round++) {
          const name = key(`race-${round}`);
          const outcomes = await Promise.all(
            ['a', 'b', 'c', 'd'].map((who) => store.putIfAbsent(name, bytes(who), 'text/plain', signal)),
          );
          expect(outcomes.toSorted()).toEqual(['created', 'exists', 'exists', 'exists']);
          expect(text(await store.get(name, { maxBytes: 1 }, signal))).toBe('abcd'[outcomes.indexOf('created')]);
        }
      });
    });

    test('list pages through more than 1000 keys in order, and sees nothing beside its prefix', async () => {
      const names = Array.from({ length: 1050 }, (_, i) => key(`list/${String(i).padStart(5, '0')}/é +%`));
      await Promise.all(names.map((name) => store.put(name, bytes('x'), 'text/plain', signal)));
      await store.put(key('list-beside'), bytes('x'), 'text/plain', signal);
      const pages: string[][] = [];
      for await (const page of store.list(key('list/'), signal)) pages.push(page.map((info) => info.key));
      expect(pages.flat()).toEqual(names);
      expect(pages.length).toBe(5);
      const first = store.list(key('list/'), signal)[Symbol.asyncIterator]();
      expect((await first.next()).value[0]).toMatchObject({ size: 1, lastModified: expect.any(Number) });
    });

    test('a prefix without keys lists no page', async () => {
      for await (const page of store.list(key('nothing/'), signal)) expect(page).toBeUndefined();
    });

    test('a presigned URL reads one key, whole or in part, without credentials', async () => {
      await store.put(key('signed'), bytes('0123456789'), 'text/plain', signal);
      const url = await store.presignGet(key('signed'), 60);
      expect(await (await fetch(url)).text()).toBe('0123456789');
      const part = await fetch(url, { headers: { range: 'bytes=2-4' } });
      expect([part.status, await part.text()]).toEqual([206, '234']);
      expect((await fetch(url.replace('signed', 'a'))).status).toBe(403);
    });

    describe('wrong settings', () => {
      const calls = (bad: S3ObjectStore): [string, () => Promise<unknown>][] => [
        ['check', () => bad.check(signal)],
        ['get', () => bad.get(key('a'), { maxBytes: 1 }, signal)],
        ['put', () => bad.put(key('denied'), bytes('x'), 'text/plain', signal)],
        ['delete', () => bad.delete(key('a'), signal)],
        ['head', () => bad.head(key('a'), signal)],
      ];

      test.each([
        ['access key', { accessKey: 'nobody-knows-me' }],
        ['secret key', { secretKey: 'not-the-secret-key' }],
      ])('a wrong %s is StoreAccessDenied for every call and is not tried twice', async (_what, changes) => {
        const bad = open(changes);
        for (const [name, run] of calls(bad)) {
          await expect(run(), name).rejects.toMatchObject({ policy: 'Waiting', reason: 'StoreAccessDenied' });
        }
        expect(bad.requests).toEqual({ head: 1, get: 1, put: 1, list: 1, delete: 1 });
        bad.close();
      });

      test('a secret key is masked from the moment the store is made, and its error tells where to mend it', async () => {
        const bad = open({ secretKey: 'not-the-secret-key' });
        const error = await bad.check(signal).catch((e: Error) => e);
        expect(redact('key=not-the-secret-key')).toBe('key=***');
        expect(String((error as Error).message)).toContain('STORE_SECRET_KEY');
        bad.close();
      });

      test('a bucket that does not exist is StoreBucketNotFound and named', async () => {
        const bad = open({ bucket: 'there-is-no-such-bucket' });
        const expected = {
          policy: 'Waiting',
          reason: 'StoreBucketNotFound',
          message: expect.stringContaining('there-is-no-such-bucket'),
        };
        await expect(bad.check(signal)).rejects.toMatchObject(expected);
        await expect(bad.get(key('a'), { maxBytes: 1 }, signal)).rejects.toMatchObject(expected);
        bad.close();
      });

      test('good settings pass the check with one request', async () => {
        const good = open();
        await good.check(signal);
        expect(Object.values(good.requests).reduce((a, b) => a + b)).toBe(1);
        good.close();
      });
    });

    faults(() => settings, open, key);
    encryption(() => settings, open, key);
  });
}

/** The same server behind a wire that fails. */
function faults(
  settings: () => S3Settings,
  open: (changes: Partial<S3Settings>) => S3ObjectStore,
  key: (name: string) => string,
): void {
  const signal = new AbortController().signal;

  describe('a bad wire', () => {
    test('a server that is down is StoreUnavailable after one repetition', async () => {
      const bad = open({ endpoint: `http://127.0.0.1:${await deadPort()}` });
      await expect(bad.check(signal)).rejects.toMatchObject({ policy: 'Retry', reason: 'StoreUnavailable' });
      expect(bad.requests.list).toBe(2);
    });

    test('a server that accepts and never answers is StoreTimeout, and its socket is closed', async () => {
      await using wire = await Wire.to(settings().endpoint);
      wire.faults = [{ kind: 'silent' }];
      const bad = open({ endpoint: wire.url, timeoutMs: 200 });
      const started = performance.now();
      await expect(bad.get(key('a'), { maxBytes: 0 }, signal)).rejects.toMatchObject({
        policy: 'Retry',
        reason: 'StoreTimeout',
      });
      expect(performance.now() - started).toBeLessThan(2_000);
      await eventually(() => wire.open === 0, { what: 'the socket to close' });
      expect(bad.requests.get).toBe(1);
    });

    test('an abort ends the call at once with the reason of the signal, and its socket is closed', async () => {
      await using wire = await Wire.to(settings().endpoint);
      wire.faults = [{ kind: 'silent' }];
      const bad = open({ endpoint: wire.url });
      const abort = new AbortController();
      const call = bad.put(key('a'), bytes('x'), 'text/plain', abort.signal);
      await eventually(() => wire.open === 1, { what: 'the connection' });
      abort.abort(new Error('lease lost'));
      await expect(call).rejects.toThrow('lease lost');
      await eventually(() => wire.open === 0, { what: 'the socket to close' });
    });

    test('an aborted signal sends nothing', async () => {
      const idle = open({});
      await expect(idle.check(AbortSignal.abort(new Error('gone')))).rejects.toThrow('gone');
      expect(idle.requests.list).toBe(0);
    });

    test('a reset in the middle of a body is repeated once and then gives the whole object', async () => {
      await using wire = await Wire.to(settings().endpoint);
      const body = Buffer.alloc(2 * MIB, 'body ');
      const store = open({ endpoint: wire.url });
      await store.put(key('reset'), body, 'text/plain', signal);
      store.close();
      wire.faults = [{ kind: 'reset', afterBytes: MIB }, { kind: 'pass' }];
      const again = open({ endpoint: wire.url });
      const got = await again.get(key('reset'), { maxBytes: body.length }, signal);
      expect(got && Buffer.compare(got, body)).toBe(0);
      expect(again.requests.get).toBe(2);
      again.close();
    });

    test('a wire that always resets is StoreUnavailable', async () => {
      await using wire = await Wire.to(settings().endpoint);
      wire.faults = [{ kind: 'reset', afterBytes: MIB }];
      const store = open({ endpoint: wire.url });
      await expect(store.get(key('reset'), { maxBytes: 4 * MIB }, signal)).rejects.toMatchObject({
        reason: 'StoreUnavailable',
      });
      expect(store.requests.get).toBe(2);
      store.close();
    });

    test('an answer that breaks off in its first byte is asked for once more', async () => {
      await using wire = await Wire.to(settings().endpoint);
      wire.faults = [{ kind: 'reset', afterBytes: 1 }, { kind: 'pass' }];
      const store = open({ endpoint: wire.url });
      expect(await store.putIfAbsent(key('first-byte'), bytes('x'), 'text/plain', signal)).toMatch(/created|exists/);
      expect(store.requests.put).toBe(2);
      store.close();
    });

    test('a kept socket that died between two calls fails neither', async () => {
      await using wire = await Wire.to(settings().endpoint);
      const store = open({ endpoint: wire.url });
      await store.check(signal);
      wire.drop();
      await store.check(signal);
      expect(wire.connections).toBe(2);
      store.close();
    });

    test('a call that waits for a socket has its whole deadline still before it', async () => {
      await using wire = await Wire.to(settings().endpoint);
      wire.faults = [...Array.from({ length: 16 }, () => ({ kind: 'silent' }) as const), { kind: 'pass' }];
      const store = open({ endpoint: wire.url, timeoutMs: 500 });
      const stuck = Array.from({ length: 16 }, () => store.head(key('a'), signal));
      const last = store.head(key('none'), signal);
      for (const outcome of await Promise.allSettled(stuck)) {
        expect(outcome).toMatchObject({ status: 'rejected', reason: { reason: 'StoreTimeout' } });
      }
      await expect(last).resolves.toBeUndefined();
      store.close();
    });

    test('200 calls at once use at most 16 sockets and keep them', async () => {
      await using wire = await Wire.to(settings().endpoint);
      const store = open({ endpoint: wire.url });
      await Promise.all(Array.from({ length: 200 }, () => store.head(key('a'), signal)));
      expect(wire.connections).toBeLessThanOrEqual(16);
      store.close();
    });
  });
}

/** The same server behind TLS. */
function encryption(
  settings: () => S3Settings,
  open: (changes: Partial<S3Settings>) => S3ObjectStore,
  key: (name: string) => string,
): void {
  const signal = new AbortController().signal;

  describe('TLS', () => {
    let dir: string;
    let wire: Wire;
    let ca: string;

    beforeAll(async () => {
      dir = mkdtempSync(join(tmpdir(), 'store-tls-'));
      const authority = await createAuthority(dir, 'store', signal);
      const pem = await createServerCert({ dir, name: 's3', authority, names: ['IP:127.0.0.1'] }, signal);
      ca = readFileSync(authority.cert, 'utf8');
      wire = await Wire.to(settings().endpoint, {
        key: readFileSync(pem.key, 'utf8'),
        cert: readFileSync(pem.cert, 'utf8'),
      });
    });
    afterAll(async () => {
      await wire[Symbol.asyncDispose]();
      rmSync(dir, { recursive: true });
    });

    test('a server whose CA is given is used like any other', async () => {
      const store = open({ endpoint: wire.url, ca });
      await store.check(signal);
      await store.put(key('tls'), bytes('hello'), 'text/plain', signal);
      expect(text(await store.get(key('tls'), { maxBytes: 5 }, signal))).toBe('hello');
      expect(await store.putIfAbsent(key('tls'), bytes('other'), 'text/plain', signal)).toBe('exists');
      store.close();
    });

    test('a certificate that is not trusted is StoreConfigInvalid and says where the CA goes', async () => {
      const store = open({ endpoint: wire.url });
      await expect(store.check(signal)).rejects.toMatchObject({
        policy: 'Waiting',
        reason: 'StoreConfigInvalid',
        message: expect.stringContaining('STORE_CA_FILE'),
      });
      expect(store.requests.list).toBe(1);
    });

    test('https spoken to a plain server is StoreConfigInvalid', async () => {
      const store = open({ endpoint: settings().endpoint.replace('http:', 'https:'), ca });
      await expect(store.check(signal)).rejects.toMatchObject({ reason: 'StoreConfigInvalid' });
    });
  });
}

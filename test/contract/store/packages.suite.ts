import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { keySpace, packageKeys } from '../../../src/store/keys.ts';
import type { BuiltPackage } from '../../../src/store/package.types.ts';
import { PackageStore } from '../../../src/store/packages.ts';
import type { S3Settings } from '../../../src/store/s3.settings.ts';
import { S3ObjectStore } from '../../../src/store/s3.ts';
import { promptOnly, withPrivateParts } from './samples.ts';

/** What `PackageStore` must do on a real bucket. */
export function packageStoreContract(server: string, connect: () => Promise<S3Settings>): void {
  describe(`PackageStore on ${server}`, () => {
    let objects: S3ObjectStore;
    let packages: PackageStore;
    const signal = new AbortController().signal;
    const space = keySpace('contract', randomUUID());
    const keys = (built: BuiltPackage) => packageKeys(space, 'team-a', built.digest);
    const put = (built: BuiltPackage, options?: Parameters<PackageStore['put']>[3]) =>
      packages.put('team-a', built, signal, options);
    const verify = (built: BuiltPackage) => packages.verify('team-a', built.digest, built.manifestSHA256, signal);

    /** What a call sends. */
    async function sent(fn: () => Promise<unknown>): Promise<Record<string, number>> {
      const before = { ...objects.requests };
      await fn();
      return Object.fromEntries(
        Object.entries(objects.requests)
          .map(([kind, n]) => [kind, n - before[kind as keyof typeof before]] as const)
          .filter(([, n]) => n > 0),
      );
    }

    beforeAll(async () => {
      objects = new S3ObjectStore(await connect());
      packages = new PackageStore(objects, space);
    });
    afterAll(() => objects?.close());

    test('a new prompt-only package costs exactly 2 PUTs and nothing else', async () => {
      expect(await sent(() => put(promptOnly('cold')))).toEqual({ put: 2 });
      expect(await verify(promptOnly('cold'))).toMatchObject({ state: 'intact' });
    });

    test('a package with two private parts costs 4 PUTs, and all of it verifies', async () => {
      const built = withPrivateParts('cold');
      expect(await sent(() => put(built))).toEqual({ put: 4 });
      expect(await verify(built)).toEqual({ state: 'intact', manifest: built.manifest });
    });

    test('a stored package that is expected to be there costs one GET and no PUT', async () => {
      const built = withPrivateParts('warm');
      expect(await put(built)).toEqual({ outcome: 'created', manifestSHA256: built.manifestSHA256 });
      expect(await sent(() => put(built, { expect: 'present' }))).toEqual({ get: 1 });
      expect(await put(built, { expect: 'present' })).toMatchObject({ outcome: 'existed' });
    });

    test('a stored package that was not expected writes nothing either', async () => {
      const built = promptOnly('twice');
      await put(built);
      expect(await sent(() => put(built))).toEqual({ put: 1, get: 1 });
      expect(await put(built)).toMatchObject({ outcome: 'existed' });
    });

    test('a package that was expected but is not there is written', async () => {
      expect(await put(promptOnly('surprise'), { expect: 'present' })).toMatchObject({ outcome: 'created' });
      expect(await verify(promptOnly('surprise'))).toMatchObject({ state: 'intact' });
    });

    test('writers of the same package at the same time all end with it stored', async () => {
      const built = withPrivateParts('race');
      await Promise.all(Array.from({ length: 8 }, () => put(built)));
      expect(await verify(built)).toMatchObject({ state: 'intact' });
    });

    test('after a death between any two requests the next put completes the package', async () => {
      const built = withPrivateParts('death');
      const { tar, manifest, privatePart } = keys(built);
      const steps: [string, Uint8Array][] = [
        [tar, built.tar],
        [privatePart('Dockerfile'), built.privateParts.Dockerfile as Uint8Array],
        [privatePart('skillenv'), built.privateParts.skillenv as Uint8Array],
      ];
      for (let written = 0; written <= steps.length; written++) {
        for (const [key] of [...steps, [manifest] as const]) await objects.delete(key, signal);
        for (const [key, bytes] of steps.slice(0, written)) await objects.put(key, bytes, 'x/y', signal);
        expect(await packages.readManifest('team-a', built.digest, built.manifestSHA256, signal)).toBeUndefined();
        await put(built);
        expect(await verify(built), `after ${written} writes`).toMatchObject({ state: 'intact' });
      }
    });

    test('the manifest is read back and checked against the hash of the status', async () => {
      const built = promptOnly('read');
      await put(built);
      const read = (hash: string) => packages.readManifest('team-a', built.digest, hash, signal);
      expect(await read(built.manifestSHA256)).toEqual(built.manifest);
      await expect(read('0'.repeat(64))).rejects.toMatchObject({
        reason: 'StoreCorrupt',
        message: expect.stringContaining(keys(built).manifest),
      });
    });

    test('one file is one ranged GET at the offset of the manifest', async () => {
      const built = withPrivateParts('range');
      await put(built);
      const file = built.manifest.files.find((f) => f.path === 'scripts/run.sh');
      const { offset, size } = file as { offset: number; size: number };
      const range = { start: offset, end: offset + size - 1 };
      const bytes = await objects.get(keys(built).tar, { maxBytes: size, range }, signal);
      expect(Buffer.from(bytes as Uint8Array).toString()).toBe('#!/bin/sh\n');
    });

    const damages: [string, 'manifest' | 'tar' | 'Dockerfile' | 'skillenv', Uint8Array | undefined, string][] = [
      ['a manifest with other bytes', 'manifest', Buffer.from('{}'), 'corrupt'],
      ['a manifest that is no JSON', 'manifest', Buffer.from('\u0000'), 'corrupt'],
      ['a missing manifest', 'manifest', undefined, 'missing'],
      ['a tar with other bytes', 'tar', Buffer.alloc(512), 'corrupt'],
      ['a tar that is longer', 'tar', Buffer.alloc(1024 * 1024), 'corrupt'],
      ['a missing tar', 'tar', undefined, 'missing'],
      ['a changed Dockerfile', 'Dockerfile', Buffer.from('FROM evil'), 'corrupt'],
      ['a missing .skillenv', 'skillenv', undefined, 'missing'],
    ];

    test.each(damages)('verify finds %s, and heal mends it', async (name, part, bytes, state) => {
      const built = withPrivateParts(`damage ${name}`);
      await put(built);
      const at = keys(built);
      const key = part === 'manifest' || part === 'tar' ? at[part] : at.privatePart(part);
      if (bytes) await objects.put(key, bytes, 'x/y', signal);
      else await objects.delete(key, signal);
      expect(await verify(built)).toMatchObject({ state, key, problem: expect.any(String) });
      expect(await put(built, { heal: true })).toMatchObject({ outcome: 'healed' });
      expect(await verify(built)).toMatchObject({ state: 'intact' });
    });

    test.each(['absent', 'present'] as const)(
      'other bytes under the digest are StoreCorrupt, never overwritten and never trusted (expected %s)',
      async (expected) => {
        const built = withPrivateParts(`foreign ${expected}`);
        await put(built);
        await objects.put(keys(built).manifest, Buffer.from('{"evil":true}'), 'x/y', signal);
        await expect(put(built, { expect: expected })).rejects.toMatchObject({
          policy: 'Waiting',
          reason: 'StoreCorrupt',
        });
        expect(
          Buffer.from((await objects.get(keys(built).manifest, { maxBytes: 99 }, signal)) as Uint8Array).toString(),
        ).toBe('{"evil":true}');
      },
    );

    test.each(['tar', 'Dockerfile'] as const)('a foreign %s without a manifest is StoreCorrupt', async (part) => {
      const built = withPrivateParts(`planted ${part}`);
      const at = keys(built);
      await objects.put(part === 'tar' ? at.tar : at.privatePart(part), Buffer.from('planted'), 'x/y', signal);
      await expect(put(built)).rejects.toMatchObject({ reason: 'StoreCorrupt' });
      expect(await objects.head(at.manifest, signal)).toBeUndefined();
    });
  });
}

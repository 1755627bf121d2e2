import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { request } from 'undici';
import { describe, expect, inject, test } from 'vitest';
import { bookmark, writesSince } from '../../support/audit.ts';
import { eventually } from '../../support/eventually.ts';
import { createRepository, git } from '../../support/git.ts';
import { K8s } from '../../support/k8s.ts';
import { makeBucket, readObject, s3Client } from '../../support/s3.ts';

const info = inject('cluster');
const hasControllerManager = existsSync(join(info.runDir, 'pids', 'kube-controller-manager'));

/** Runs git as a client with these extra settings, from the run directory. */
const client = (settings: Record<string, string>, ...args: string[]): Promise<string> =>
  git(info.runDir, [...Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`]), ...args]);

const logLines = (part: string): string[] =>
  readFileSync(info.git.accessLog, 'utf8')
    .split('\n')
    .filter((line) => line.includes(part));

describe('the API server', () => {
  test('applies, shows, changes and deletes objects', async () => {
    await using k8s = new K8s(info.kubeconfig);
    const namespace = await k8s.createNamespace('cluster');
    const ref = { apiVersion: 'v1', kind: 'ConfigMap', name: 'a', namespace };
    await k8s.apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', namespace }, data: { k: '1' } });
    await k8s.annotate(ref, { note: 'x' });
    const found = await k8s.get(ref);
    expect(found?.data).toEqual({ k: '1' });
    expect(found?.metadata.annotations).toEqual({ note: 'x' });
    expect(await k8s.list({ apiVersion: 'v1', kind: 'ConfigMap', namespace })).toContainEqual(
      expect.objectContaining({ kind: 'ConfigMap', data: { k: '1' } }),
    );
    await k8s.delete(ref);
    expect(await k8s.get(ref)).toBeUndefined();
    await k8s.delete({ apiVersion: 'v1', kind: 'Namespace', name: namespace });
  });

  test.skipIf(!hasControllerManager)('ends namespaces with all that is in them', async () => {
    await using k8s = new K8s(info.kubeconfig);
    const namespace = await k8s.createNamespace('cluster');
    await k8s.apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', namespace } });
    await k8s.waitFor({ apiVersion: 'v1', kind: 'ServiceAccount', name: 'default', namespace }, () => true);
    const ref = { apiVersion: 'v1', kind: 'Namespace', name: namespace };
    await k8s.delete(ref);
    await k8s.waitGone(ref);
  });

  test.skipIf(!hasControllerManager)('collects objects whose owner is gone', async () => {
    await using k8s = new K8s(info.kubeconfig);
    const namespace = await k8s.createNamespace('cluster');
    const map = (name: string, more = {}) => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name, namespace, ...more },
    });
    const [owner] = await k8s.apply(map('owner'));
    const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: owner?.metadata.uid }];
    await k8s.apply(map('owned', { ownerReferences }));
    await k8s.delete({ apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', namespace });
    await k8s.waitGone({ apiVersion: 'v1', kind: 'ConfigMap', name: 'owned', namespace });
    await k8s.delete({ apiVersion: 'v1', kind: 'Namespace', name: namespace });
  });

  test.skipIf(info.auditLog === undefined)('records every write, and no read', async () => {
    await using k8s = new K8s(info.kubeconfig);
    const namespace = await k8s.createNamespace('cluster');
    const since = bookmark(info);
    const ref = { apiVersion: 'v1', kind: 'ConfigMap', name: 'counted', namespace };
    await k8s.apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'counted', namespace } });
    await k8s.get(ref);
    await k8s.list(ref);
    await k8s.delete(ref);
    const mine = () => writesSince(info, since, (write) => write.namespace === namespace && write.name === 'counted');
    await eventually(() => mine().length >= 2, { what: 'two lines in the audit log' });
    expect(mine().map(({ verb, resource, code }) => [verb, resource, code])).toEqual([
      ['patch', 'configmaps', 201],
      ['delete', 'configmaps', 200],
    ]);
    await k8s.delete({ apiVersion: 'v1', kind: 'Namespace', name: namespace });
  });
});

describe('the S3 server', () => {
  test('stores and gives back', async () => {
    const bucket = await makeBucket(info.s3);
    await s3Client(info.s3).putObject(bucket, 'a/b', Buffer.from('hello'));
    expect((await readObject(info.s3, bucket, 'a/b')).toString()).toBe('hello');
  });

  test('takes more buckets than a test run makes', async () => {
    const fill = async () => {
      const bucket = await makeBucket(info.s3, 'many');
      await s3Client(info.s3).putObject(bucket, 'a', Buffer.from('x'));
    };
    await Promise.all(Array.from({ length: 60 }, fill));
  });

  test('refuses another key', async () => {
    const stranger = s3Client({ ...info.s3, secretKey: 'wrong' });
    await expect(stranger.listBuckets()).rejects.toThrow(/signature/i);
  });
});

describe('the Git server', () => {
  const TREE = {
    'docs/a.md': 'hello',
    'bin/run': { content: '#!/bin/sh\n', mode: '100755' as const },
    link: { symlink: 'docs/a.md' },
    'odd "name"\n': 'x',
    module: { submodule: '1'.repeat(40) },
  };

  test('offers commits that were written without a checkout', async () => {
    const repository = await createRepository(info.git.root, 'cluster-files');
    const first = await repository.commit(TREE);
    const second = await repository.commit({ 'docs/a.md': 'changed' }, { remove: ['bin/run'] });
    expect(await git(repository.path, ['ls-tree', '-r', '-z', first])).toContain('100755 blob');
    const entries = (await git(repository.path, ['ls-tree', '-r', '-z', second])).split('\0').filter(Boolean);
    expect(entries.map((entry) => entry.replace(/ [0-9a-f]{40}\t/, ' '))).toEqual([
      '100644 blob docs/a.md',
      '120000 blob link',
      '160000 commit module',
      '100644 blob odd "name"\n',
    ]);
    const replaced = await repository.forcePush({ only: 'this' });
    expect(await git(repository.path, ['log', '--format=%H', 'main'])).toBe(replaced);
    await repository.tag('v1', first);
    await repository.tag('v2', first, 'annotated');
    await repository.branch('old', first);
    const refs = await client({}, 'ls-remote', `${info.git.httpUrl}/cluster-files.git`);
    expect(refs.split('\n').map((line) => line.split('\t')[1])).toEqual([
      'HEAD',
      'refs/heads/main',
      'refs/heads/old',
      'refs/tags/v1',
      'refs/tags/v2',
      'refs/tags/v2^{}',
    ]);
  });

  test('gives the same ids for the same content', async () => {
    const one = await createRepository(info.git.root, 'cluster-same-1');
    const two = await createRepository(info.git.root, 'cluster-same-2');
    expect(await one.commit(TREE)).toBe(await two.commit(TREE));
  });

  test.each([
    ['the password', () => `Basic ${Buffer.from(`${info.git.username}:${info.git.password}`).toString('base64')}`],
    ['the bearer token', () => `Bearer ${info.git.bearerToken}`],
  ])('lets %s in below /private', async (_what, authorization) => {
    const repository = await createRepository(info.git.root, 'cluster-private');
    const commit = await repository.commit({ a: 'x' });
    const url = `${info.git.privateUrl}/cluster-private.git`;
    const refs = await client({ 'http.extraHeader': `Authorization: ${authorization()}` }, 'ls-remote', url, 'main');
    expect(refs).toContain(commit);
  });

  test.each(['', 'Authorization: Bearer wrong', 'Authorization: Basic d3Jvbmc6d3Jvbmc='])(
    'refuses below /private the header %j',
    async (header) => {
      await createRepository(info.git.root, 'cluster-private');
      const call = client({ 'http.extraHeader': header }, 'ls-remote', `${info.git.privateUrl}/cluster-private.git`);
      await expect(call).rejects.toThrow(/could not read Username|Authentication failed/);
    },
  );

  test('serves https with a certificate of its own authority', async () => {
    const repository = await createRepository(info.git.root, 'cluster-tls');
    const commit = await repository.commit({ a: 'x' });
    const url = `${info.git.httpsUrl}/cluster-tls.git`;
    await expect(client({}, 'ls-remote', url)).rejects.toThrow(/certificate/);
    const ca = join(info.runDir, 'pki', 'git-ca.crt');
    expect(readFileSync(ca, 'utf8')).toBe(info.git.caCert);
    expect(await client({ 'http.sslCAInfo': ca }, 'ls-remote', url, 'main')).toContain(commit);
  });

  test('logs what each request asked for, before the client has its answer', async () => {
    const repository = await createRepository(info.git.root, 'cluster-log');
    const commit = await repository.commit({ a: 'x' });
    const url = `${info.git.httpUrl}/cluster-log.git`;
    await client({}, 'ls-remote', url);
    expect(logLines('cluster-log')).toEqual(['info/refs /pub/cluster-log.git', 'ls-refs /pub/cluster-log.git']);
    const copy = await createRepository(info.git.root, 'cluster-log-copy');
    await git(copy.path, ['fetch', '--depth=1', '--filter=blob:limit=10', url, commit]);
    expect(logLines('cluster-log.git').at(-1)).toBe('fetch /pub/cluster-log.git');
  });

  test('serves reading over ssh to its key alone, and nothing else', async () => {
    const repository = await createRepository(info.git.root, 'cluster-ssh');
    const commit = await repository.commit({ a: 'x' });
    const dir = join(info.runDir, 'ssh');
    expect(readFileSync(join(dir, 'identity'), 'utf8')).toBe(info.git.sshIdentity);
    const ssh = (key: string) =>
      `ssh -F none -oBatchMode=yes -oIdentitiesOnly=yes -oUserKnownHostsFile=${join(dir, 'known_hosts')} -i ${join(dir, key)}`;
    const url = `${info.git.sshUrl}/cluster-ssh.git`;
    expect(await client({ 'core.sshCommand': ssh('identity') }, 'ls-remote', url, 'main')).toContain(commit);
    await expect(client({ 'core.sshCommand': ssh('host_key') }, 'ls-remote', url)).rejects.toThrow('Permission denied');
    const push = git(repository.path, ['-c', `core.sshCommand=${ssh('identity')}`, 'push', url, 'main:other']);
    await expect(push).rejects.toThrow('only git-upload-pack is served');
  });

  test('refuses pushes over http', async () => {
    const repository = await createRepository(info.git.root, 'cluster-push');
    await repository.commit({ a: 'x' });
    const push = git(repository.path, ['push', `${info.git.httpUrl}/cluster-push.git`, 'main:other']);
    await expect(push).rejects.toThrow('403');
  });

  test.each([
    ['/status/429/x.git/info/refs', 429, '1'],
    ['/status/503/x.git', 503, '1'],
    ['/status/500/x.git', 500, undefined],
    ['/status/junk/x.git', 400, undefined],
    ['/pub/absent.git/info/refs?service=git-upload-pack', 404, undefined],
    ['/elsewhere', 404, undefined],
  ])('answers %s with %i', async (path, status, retryAfter) => {
    const { statusCode, headers, body } = await request(new URL(path, info.git.httpUrl));
    await body.dump();
    expect(statusCode).toBe(status);
    expect(headers['retry-after']).toBe(retryAfter);
  });

  test('redirects below /redirect to the same repository under another name', async () => {
    const { statusCode, headers } = await request(new URL('/redirect/a.git/info/refs?x=1', info.git.httpUrl));
    expect(statusCode).toBe(302);
    const { hostname, pathname, search } = new URL(String(headers.location));
    expect([hostname, pathname, search]).toEqual(['localhost', '/pub/a.git/info/refs', '?x=1']);
  });

  test('accepts below /silent and says nothing', async () => {
    const path = `/silent/${process.hrtime.bigint()}.git`;
    const ended = new AbortController();
    const call = request(new URL(path, info.git.httpUrl), { signal: ended.signal });
    const outcome = expect(call).rejects.toThrow();
    await eventually(() => logLines(path).length === 1, { what: 'the request in the log' });
    ended.abort();
    await outcome;
  });
});

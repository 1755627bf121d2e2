import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { API_VERSION } from '../../src/api/labels.ts';
import { eventually } from '../support/eventually.ts';
import { git } from '../support/git.ts';
import { K8s, type K8sObject } from '../support/k8s.ts';
import { listObjects, makeBucket, s3Client } from '../support/s3.ts';
import type { Bench } from './stage.ts';
import { pooled, timed } from './stats.ts';

/** Seconds that a bare client needs for the operator's own writes. */
export interface Floor {
  applies: number;
  statuses: number;
  puts: number;
  lsRemotes: number;
  fetches: number;
}

/** Seconds of the writes alone. */
export const writesOf = ({ applies, statuses, puts }: Floor): number => applies + statuses + puts;

/** What the operator wrote, to be written again. */
export interface Written {
  skills: readonly K8sObject[];
  source: K8sObject;
  /** Its bucket; every object in it is one PUT. */
  bucket: string;
}

const CONNECTIONS = 16;
const MANAGER = 'bench-floor';
const PRESIGNED_SECONDS = 3600;
const GIT_AT_ONCE = 4;
const CLEAR_MS = 300_000;

const collection = (namespace: string) => `/apis/${API_VERSION}/namespaces/${namespace}/skills`;

/** The same object in another namespace, as its controller would send it, owned by `owner`. */
function specOf({ metadata, spec }: K8sObject, namespace: string, owner: K8sObject): K8sObject {
  const reference = metadata.ownerReferences?.[0];
  const ownerReferences = [{ ...reference, uid: owner.metadata.uid, name: owner.metadata.name }];
  const { name, labels = {} } = metadata;
  return { apiVersion: API_VERSION, kind: 'Skill', metadata: { name, namespace, labels, ownerReferences }, spec };
}

async function send(k8s: K8s, path: string, body: unknown): Promise<K8sObject> {
  const { status, text } = await k8s.api.request('PATCH', path, {
    body,
    contentType: 'application/apply-patch+yaml',
  });
  if (status >= 300) throw new Error(`PATCH ${path}: ${status} ${text.slice(0, 300)}`);
  return JSON.parse(text) as K8sObject;
}

async function apiFloor(bench: Bench, { skills, source }: Written): Promise<{ applies: number; statuses: number }> {
  await using k8s = new K8s(bench.info.kubeconfig);
  const namespace = await k8s.createNamespace('floor');
  const { apiVersion, kind, metadata, spec } = source;
  // Suspended, and its Skills go before the operator runs again: it must not find work here.
  const copy = { apiVersion, kind, metadata: { name: metadata.name, namespace }, spec: { ...spec, suspend: true } };
  const [owner] = await k8s.apply(copy);
  if (!owner) throw new Error('the source of the floor was not applied');
  const made = new Map<string, K8sObject>();
  const applies = await timed(() =>
    pooled(skills, CONNECTIONS, async (skill) => {
      const { name } = skill.metadata;
      const path = `${collection(namespace)}/${name}?fieldManager=${MANAGER}&force=false`;
      made.set(name, await send(k8s, path, specOf(skill, namespace, owner)));
    }),
  );
  const statuses = await timed(() =>
    pooled(skills, CONNECTIONS, async ({ metadata: { name }, status }) => {
      const { uid, resourceVersion } = made.get(name)?.metadata ?? {};
      const body = { apiVersion, kind: 'Skill', metadata: { name, namespace, uid, resourceVersion }, status };
      await send(k8s, `${collection(namespace)}/${name}/status?fieldManager=${MANAGER}&force=true`, body);
    }),
  );
  await clear(k8s, namespace);
  return { applies: applies.seconds, statuses: statuses.seconds };
}

/** Removes all sources and Skills of a namespace; no operator may run that would answer. */
export async function clear(k8s: K8s, namespace: string): Promise<void> {
  for (const plural of ['marketplacesources', 'skills']) {
    const path = `/apis/${API_VERSION}/namespaces/${namespace}/${plural}`;
    await k8s.api.request('DELETE', path, { timeoutMs: CLEAR_MS });
    const empty = async () => {
      const { text } = await k8s.api.request('GET', `${path}?limit=1`);
      return (JSON.parse(text) as { items: unknown[] }).items.length === 0;
    };
    await eventually(empty, { timeoutMs: CLEAR_MS, what: `the end of all ${plural}`, intervalMs: 200 });
  }
}

/** The same number of PUTs of the same sizes, signed beforehand. */
async function storeFloor({ info }: Bench, { bucket }: Written): Promise<number> {
  const objects = await listObjects(info.s3, bucket);
  const target = await makeBucket(info.s3, 'floor');
  const client = s3Client(info.s3);
  const payload = Buffer.alloc(Math.max(...objects.map(({ size }) => size)), 'floor ');
  const puts = await Promise.all(
    objects.map(async ({ key, size }) => ({
      url: await client.presignedPutObject(target, key, PRESIGNED_SECONDS),
      body: payload.subarray(0, size),
    })),
  );
  const agent = new Agent({ connections: CONNECTIONS, pipelining: 1 });
  try {
    const { seconds } = await timed(() =>
      pooled(puts, CONNECTIONS, async ({ url, body }) => {
        const headers = { 'if-none-match': '*' };
        const answer = await request(url, { dispatcher: agent, method: 'PUT', headers, body });
        const text = await answer.body.text();
        if (answer.statusCode !== 200) throw new Error(`PUT: ${answer.statusCode} ${text.slice(0, 300)}`);
      }),
    );
    return seconds;
  } finally {
    await agent.close();
  }
}

/** A bare `ls-remote`, then a shallow `git fetch` of HEAD, for every repository, four at a time. */
async function gitFloor(urls: readonly string[]): Promise<{ lsRemotes: number; fetches: number }> {
  const dir = await mkdtemp(join(tmpdir(), 'skill-operator-floor-'));
  try {
    const work = urls.map((url, i) => ({ url, repository: join(dir, `${i}.git`) }));
    const forAll = (args: (url: string) => string[]) =>
      timed(() =>
        pooled(work, GIT_AT_ONCE, async ({ url, repository }) => {
          await git(repository, args(url));
        }),
      );
    await pooled(work, GIT_AT_ONCE, async ({ repository }) => {
      await git(dir, ['init', '--quiet', '--bare', repository]);
    });
    const lsRemotes = await forAll((url) => ['ls-remote', '--symref', '--', url, 'HEAD']);
    const fetches = await forAll((url) => ['fetch', '--quiet', '--depth=1', '--no-tags', '--', url, 'HEAD']);
    return { lsRemotes: lsRemotes.seconds, fetches: fetches.seconds };
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

/** Writes the same again, one kind after the other, at 16 connections, and fetches the same repositories. */
export async function measureFloor(bench: Bench, written: Written, urls: readonly string[]): Promise<Floor> {
  const api = await apiFloor(bench, written);
  const puts = await storeFloor(bench, written);
  return { ...api, puts, ...(await gitFloor(urls)) };
}

/** Lets the API server and the store do everything once, so that neither the operator nor the floor pays for their start. */
export async function warmUp(bench: Bench): Promise<void> {
  await using k8s = new K8s(bench.info.kubeconfig);
  const namespace = await k8s.createNamespace('warm-up');
  const source = {
    apiVersion: API_VERSION,
    kind: 'MarketplaceSource',
    metadata: { name: 'warm-up', namespace },
    spec: { type: 'git', git: { url: 'https://git.example.invalid/none.git' }, suspend: true },
  };
  await k8s.apply(source);
  const names = Array.from({ length: 200 }, (_, i) => `warm-up-${i}`);
  await pooled(names, CONNECTIONS, async (name) => {
    const path = `${collection(namespace)}/${name}`;
    const object = { apiVersion: API_VERSION, kind: 'Skill', metadata: { name, namespace } };
    const spec = { source: { marketplaceRef: { name: 'warm-up' } }, plugin: 'p', path: `plugins/p/skills/${name}` };
    await send(k8s, `${path}?fieldManager=${MANAGER}`, { ...object, spec: { ...spec, suspend: true } });
    await send(k8s, `${path}/status?fieldManager=${MANAGER}`, { ...object, status: { observedGeneration: 1 } });
  });
  await clear(k8s, namespace);
}

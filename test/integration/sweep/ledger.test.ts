import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import type { Skill } from '../../../src/api/skill.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { silentLogger } from '../../../src/base/log.ts';
import { createMetrics } from '../../../src/base/metrics.ts';
import { HttpRegistry } from '../../../src/build/registry.ts';
import { type LedgerEntry, leftoversEntry } from '../../../src/controllers/byo/ledger.ts';
import { ImageRecords } from '../../../src/controllers/byo/records.ts';
import { type Byo, byoHands } from '../../../src/controllers/byo/setup.ts';
import { skillThing } from '../../../src/controllers/pins.ts';
import { LedgerWorker } from '../../../src/controllers/sweep/ledger-worker.ts';
import { E2BEngine } from '../../../src/engine/e2b.ts';
import { settingsHash, templateName } from '../../../src/engine/names.ts';
import { pushImage } from '../../../src/jobs/push.ts';
import { Cache } from '../../../src/kube/store.ts';
import { E2BStub } from '../../contract/engine/stubs/e2b.ts';
import { promptOnly } from '../../contract/store/samples.ts';
import { SETTINGS } from '../../unit/build/samples.ts';
import { layoutParts, writeLayout } from '../../unit/jobs/layouts.ts';
import { FakeClock } from '../../unit/kube/fake-clock.ts';
import { dockerConfig, startRegistry, type TestRegistry } from '../build/registries.ts';
import { newRig, type Rig, serves, signal } from './rig.ts';

const info = inject('cluster');
const KEY = 'e2b_aaaaaaaaaaaaaaaa';
const TEMPLATE = { resources: { cpuMillis: 2000, memoryMiB: 1024 } };
const HASH = settingsHash(TEMPLATE);

let rig: Rig;
let stub: E2BStub;
let server: TestRegistry;
let registry: HttpRegistry;
let byo: Byo;
let engine: E2BEngine;
let dir: string;

beforeAll(async () => {
  rig = await newRig(info);
  stub = await new E2BStub().listen();
  server = await startRegistry({ auth: 'basic' });
  dir = mkdtempSync(join(tmpdir(), 'ledger-test-'));
  const { host, username, password } = server;
  registry = new HttpRegistry({
    host,
    insecure: true,
    credential: async () => ({ username, password, hosts: undefined }),
  });
  engine = new E2BEngine({ url: stub.url, key: async () => ({ value: KEY, hosts: undefined }) });
  byo = byoHands(
    {
      settings: {
        ...SETTINGS,
        namespace: rig.home,
        installation: rig.installation,
        registry: { host, prefix: 'skills' },
      },
      registry,
      engines: { e2b: { engine, settings: TEMPLATE, maxConcurrent: 4 } },
      store: rig.store,
      space: rig.space,
      operatorNamespace: rig.home,
      allowAnonymousWrites: true,
    },
    {
      api: rig.api,
      packages: rig.packages,
      skills: new Cache<Skill>(),
      clock: systemClock,
      wake: () => undefined,
    },
  );
}, 300_000);
afterAll(async () => {
  await registry?.close();
  await server?.[Symbol.asyncDispose]();
  await stub?.[Symbol.asyncDispose]();
  await rig?.[Symbol.asyncDispose]();
  if (dir) rmSync(dir, { recursive: true, force: true });
});

const ownerOf = (skill: string) => ({ namespace: rig.namespace, skill, engine: 'e2b' });

/** Pushes an image of its own into the Skill's repository; its full name. */
async function push(skill: string, text = randomBytes(4).toString('hex')): Promise<{ image: string; digest: string }> {
  const at = mkdtempSync(join(dir, 'push-'));
  const [layout, work, credential] = [join(at, 'layout'), join(at, 'work'), join(at, 'config.json')];
  writeLayout(layout, layoutParts(undefined, text));
  writeFileSync(credential, dockerConfig(server.host, server.username, server.password));
  const image = `${server.host}/${byo.repositoryOf(ownerOf(skill))}`;
  const rest = { maxBytes: 1e9, result: join(at, 'result'), insecure: true, network: {}, skopeo: 'skopeo' };
  const { digest } = await pushImage({ layout, work, image, credential, ...rest }, systemClock, signal);
  return { image: `${image}@${digest}`, digest };
}

/** Gives an image another tag, as a person would. */
async function tagAs(skill: string, digest: string, tag: string): Promise<void> {
  const authorization = `Basic ${Buffer.from(`${server.username}:${server.password}`).toString('base64')}`;
  const type = 'application/vnd.oci.image.manifest.v1+json';
  const url = `http://${server.host}/v2/${byo.repositoryOf(ownerOf(skill))}/manifests`;
  const manifest = await fetch(`${url}/${digest}`, { headers: { authorization, accept: type } });
  const body = await manifest.arrayBuffer();
  const answer = await fetch(`${url}/${tag}`, {
    method: 'PUT',
    headers: { authorization, 'content-type': type },
    body,
  });
  if (answer.status !== 201) throw new Error(`the registry answers ${answer.status} to a tag`);
}

/** A version of a Skill with its image and its template. */
async function versionOf(skill: string, name?: string) {
  const { image, digest } = await push(skill);
  const identity = { installation: rig.installation, namespace: rig.namespace, skill, engine: 'e2b' as const };
  const derived = templateName('pdf', { ...identity, imageDigest: digest, settings: HASH });
  const response = await fetch(`${stub.url}/v3/templates`, {
    method: 'POST',
    headers: { 'x-api-key': KEY, 'content-type': 'application/json' },
    body: JSON.stringify({ name: name ?? derived, cpuCount: 2, memoryMB: 1024 }),
  });
  const { templateID } = (await response.json()) as { templateID: string };
  return { image, digest, templateID };
}

const entryOf = (skill: string, { image, templateID }: { image?: string; templateID?: string }): LedgerEntry => ({
  ...{ namespace: rig.namespace, skill, uid: `uid-${skill}`, bareName: 'pdf', engine: 'e2b', digest: 'd'.repeat(64) },
  ...{ image, templateID, settings: HASH, why: 'InUse' },
});

const imageThere = (skill: string, digest: string) => registry.has(byo.repositoryOf(ownerOf(skill)), digest, signal);

/** A worker on a clock of its own, and the keys that it woke. */
function newWorker() {
  const clock = new FakeClock();
  const woken: string[] = [];
  const { api, pins } = rig;
  const worker = new LedgerWorker({
    ...{ api, pins, clock, ledger: byo.ledger, removals: byo.removals, leftovers: byo.leftovers },
    ...{ wake: (key: string) => void woken.push(key), logger: silentLogger, metrics: createMetrics() },
  });
  return { worker, clock, woken };
}

describe('the ledger', () => {
  test('survives the process: another one reads the entries and removes template, record and image', async () => {
    const made = await versionOf('gone');
    const records = new ImageRecords(rig.store, rig.space);
    await records.put(ownerOf('gone'), 'a'.repeat(64), { digest: made.digest, size: 1 }, signal);
    await byo.ledger.add(entryOf('gone', made), signal);
    await byo.ledger.load(signal);
    expect([...byo.ledger.entries().values()]).toEqual([entryOf('gone', made)]);
    expect(byo.ledger.digestsOf(rig.namespace, 'gone')).toEqual(['d'.repeat(64)]);
    const { worker, woken } = newWorker();
    expect(await worker.run(signal)).toBeUndefined();
    expect([stub.templates.has(made.templateID), await imageThere('gone', made.digest)]).toEqual([false, false]);
    expect(await rig.keys()).toEqual([]);
    expect(woken).toEqual([`${rig.namespace}/gone`]);
    await byo.ledger.load(signal);
    expect(byo.ledger.entries().size).toBe(0);
  });

  test('leaves what a Skill names by now to that Skill', async () => {
    const [template, image] = [await versionOf('named'), await versionOf('named')];
    const version = { runtime: 'e2b', engine: 'e2b' };
    const built = promptOnly('named');
    // One Skill names the template of the first version and the image of the second.
    const { served } = serves(built, { ...version, templateID: template.templateID, image: image.image });
    await rig.skill('other', { served } as never);
    await byo.ledger.add(entryOf('named', template), signal);
    await byo.ledger.add(entryOf('named', image), signal);
    const { worker } = newWorker();
    expect(await worker.run(signal)).toBeUndefined();
    expect([stub.templates.has(template.templateID), await imageThere('named', template.digest)]).toEqual([
      true,
      false,
    ]);
    expect([stub.templates.has(image.templateID), await imageThere('named', image.digest)]).toEqual([false, true]);
    await rig.setStatus('other', { served: null } as never);
  });

  test('keeps an entry whose template is not the Skill’s own, and tries it ever later', async () => {
    const made = await versionOf('foreign', 'somebody-elses');
    await byo.ledger.add(entryOf('foreign', made), signal);
    const { worker, clock } = newWorker();
    const waits = [];
    for (let i = 0; i < 3; i++) {
      const wait = (await worker.run(signal)) as number;
      waits.push(wait / 60_000);
      // Before its time nothing is tried.
      stub.takeCalls();
      await worker.run(signal);
      expect(stub.takeCalls()).toEqual([]);
      await clock.advance(wait);
    }
    expect(waits).toEqual([1, 2, 4]);
    expect([stub.templates.has(made.templateID), await imageThere('foreign', made.digest)]).toEqual([true, true]);
    await byo.ledger.remove(entryOf('foreign', made), signal);
  });

  test('never touches an image outside the repository of its Skill', async () => {
    const theirs = await push('theirs');
    const entry = entryOf('thief', { image: theirs.image });
    await byo.ledger.add(entry, signal);
    const { worker } = newWorker();
    expect(await worker.run(signal)).toBeGreaterThan(0);
    expect(await imageThere('theirs', theirs.digest)).toBe(true);
    await byo.ledger.remove(entry, signal);
  });

  test('waits for an engine that is down and for a pass of the Skill, and ends once they are done', async () => {
    const made = await versionOf('later');
    await byo.ledger.add(entryOf('later', made), signal);
    const { worker, clock } = newWorker();
    await rig.pins.hold(skillThing(rig.namespace, 'later'), 'a pass', signal);
    stub.takeCalls();
    await clock.advance((await worker.run(signal)) as number);
    expect(stub.takeCalls()).toEqual([]);
    rig.pins.release('a pass');
    stub.fail({ path: /./, times: 20, answer: { status: 503, text: 'down' } });
    const wait = (await worker.run(signal)) as number;
    expect(byo.ledger.entries().size).toBe(1);
    await clock.advance(wait);
    // Whatever is left of the outage.
    let again: number | undefined = wait;
    for (let i = 0; i < 20 && again !== undefined; i++) {
      again = await worker.run(signal);
      await clock.advance(again ?? 0);
    }
    expect([stub.templates.has(made.templateID), byo.ledger.entries().size]).toEqual([false, 0]);
  });

  test('an entry that a person edited beyond recognition is left to that person', async () => {
    const name = 'skill-operator-ledger-broken';
    const labels = { 'skills.tfrobot.io/ledger': 'true' };
    const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: rig.home, labels } };
    for (const entry of ['{', 'null', '{"namespace": 1}']) {
      await rig.k8s.apply({ ...map, data: { entry } });
      await byo.ledger.load(signal);
      expect(byo.ledger.entries().size).toBe(0);
    }
  });
});

describe('images that were pushed and never recorded', () => {
  const owner = () => ({ namespace: rig.namespace, skill: 'lost', uid: 'uid-lost' });
  const pod = (finalizers?: string[]) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'still-pushing',
      namespace: rig.home,
      labels: { 'skills.tfrobot.io/skill-uid': 'uid-lost' },
      ...(finalizers ? { finalizers } : {}),
    },
    spec: { containers: [{ name: 'push', image: 'none' }], serviceAccountName: 'skill-operator' },
  });

  /** An orphan of an earlier Skill of the name, one that the ledger has, one with a tag of a person's, and two that nothing names. */
  async function images() {
    const [orphan, listed, shared, recorded, bare] = await Promise.all(
      ['orphan', 'listed', 'shared', 'recorded', 'bare'].map((text) => push('lost', text)),
    );
    if (!orphan || !listed || !shared || !recorded || !bare) throw new Error('not pushed');
    const records = new ImageRecords(rig.store, rig.space);
    const put = async (hash: string, digest: string) =>
      await records.put(ownerOf('lost'), hash.repeat(64), { digest, size: 1 }, signal);
    await put('1', orphan.digest);
    await put('2', recorded.digest);
    await records.keepDigest(ownerOf('lost'), orphan.digest, signal);
    await byo.ledger.add(entryOf('lost', { image: listed.image }), signal);
    await tagAs('lost', shared.digest, 'stable');
    return { orphan, listed, shared, recorded, bare };
  }
  const left = async (made: Awaited<ReturnType<typeof images>>) => {
    const there = Object.entries(made).map(async ([name, { digest }]) =>
      (await imageThere('lost', digest)) ? name : '',
    );
    return (await Promise.all(there)).filter(Boolean);
  };

  test('go with their records once no pod can push any more, and nothing else goes', async () => {
    const made = await images();
    await rig.k8s.apply(pod());
    await expect(byo.leftovers.remove(owner(), signal)).rejects.toMatchObject({ reason: 'RemovalPending' });
    expect(await left(made)).toHaveLength(5);
    await rig.k8s.delete({ apiVersion: 'v1', kind: 'Pod', name: 'still-pushing', namespace: rig.home });
    await byo.leftovers.remove(owner(), signal);
    expect(await left(made)).toEqual(['orphan', 'listed', 'shared']);
    expect((await rig.keys()).filter((key) => key.includes('/lost-'))).toHaveLength(1);
    await byo.ledger.remove(entryOf('lost', { image: made.listed.image }), signal);
    await new ImageRecords(rig.store, rig.space).removeDigest(ownerOf('lost'), made.orphan.digest, signal);
  });

  test('wait in the ledger for a registry that was down, and are a living Skill’s own business', async () => {
    const uids = ['dead', 'alive'].map((skill) => ({
      namespace: rig.namespace,
      name: skill,
      uid: skill,
      bareName: 'x',
    }));
    const [dead, alive] = [await push('dead'), await push('alive')];
    for (const one of uids) await byo.ledger.add(leftoversEntry(one), signal);
    expect(byo.ledger.digestsOf(rig.namespace, 'dead')).toEqual([]);
    await rig.skill('alive', serves(promptOnly('alive')));
    const { worker } = newWorker();
    expect(await worker.run(signal)).toBeUndefined();
    expect([await imageThere('dead', dead.digest), await imageThere('alive', alive.digest)]).toEqual([false, true]);
  });
});

describe('the sweep of images', () => {
  const record = async (skill: string, hash: string, digest: string) => {
    const owner = ownerOf(skill);
    await new ImageRecords(rig.store, rig.space).put(owner, hash.repeat(64), { digest, size: 1 }, signal);
    return `images/${rig.namespace}/${skill}-e2b/${hash.repeat(64)}.json`;
  };
  const sweep = async (times = 1, ledgerImages: ReadonlySet<string> = new Set()) => {
    const images = { registry, repositoryOf: (owner: Parameters<Byo['repositoryOf']>[0]) => byo.repositoryOf(owner) };
    for (let i = 0; i < times; i++) await rig.sweeper({ images, ledgerImages: () => ledgerImages }).run(signal);
  };
  const recordsLeft = async () => (await rig.keys()).filter((key) => key.startsWith('images/'));

  test('deletes records and images that no Skill names, and keeps all others', async () => {
    const [leaked, served, building, kept, listed] = await Promise.all(
      ['leaked', 'served', 'building', 'kept', 'listed'].map((text) => push('pdf', text)),
    );
    if (!leaked || !served || !building || !kept || !listed) throw new Error('not pushed');
    const keys = [
      await record('pdf', '1', leaked.digest),
      await record('pdf', '2', served.digest),
      await record('pdf', '3', building.digest),
      // The same image under another input, which nobody builds.
      await record('pdf', '4', building.digest),
      await record('pdf', '5', kept.digest),
      await record('pdf', '6', listed.digest),
    ];
    // What the deletion of a Skill with deletionPolicy Orphan does.
    const orphan = serves(promptOnly('kept'), { runtime: 'e2b', engine: 'e2b', image: kept.image });
    await byo.hands.keepImages(
      { metadata: { name: 'pdf', namespace: rig.namespace }, status: orphan } as Skill,
      signal,
    );
    const built = promptOnly('pdf');
    await rig.packages.put(rig.namespace, built, signal);
    const version = { runtime: 'e2b', engine: 'e2b', image: served.image };
    const candidate = {
      ...serves(built, { runtime: 'e2b', engine: 'e2b' }).served,
      phase: 'Building',
      buildID: '3'.repeat(64),
    };
    await rig.skill('pdf', { ...serves(built, version), candidate } as never);
    await sweep(2, new Set([listed.image]));
    expect(await recordsLeft()).toEqual(keys.slice(1));
    const there = await Promise.all(
      [leaked, served, building, kept, listed].map(({ digest }) => imageThere('pdf', digest)),
    );
    expect(there).toEqual([false, true, true, true, true]);
    for (const key of keys.slice(1)) await rig.store.delete(rig.space.root + key, signal);
  });

  test('a record whose image could not be deleted is remembered by its mark until the image is gone', async () => {
    const leaked = await push('odt');
    const key = await record('odt', 'a', leaked.digest);
    await sweep();
    expect(await recordsLeft()).toEqual([key]);
    const broken = new HttpRegistry({ host: '127.0.0.1:9', insecure: true, credential: undefined });
    const images = {
      registry: Object.assign(Object.create(registry), { deleteImage: broken.deleteImage.bind(broken) }),
      repositoryOf: byo.repositoryOf,
    };
    await rig.sweeper({ images }).run(signal);
    expect(await recordsLeft()).toEqual([]);
    expect([await imageThere('odt', leaked.digest), (await rig.keys()).includes(`marks/${key}`)]).toEqual([true, true]);
    await sweep();
    expect([await imageThere('odt', leaked.digest), (await rig.keys()).includes(`marks/${key}`)]).toEqual([
      false,
      false,
    ]);
    await broken.close();
  });

  test('waits for a pass of the Skill', async () => {
    const leaked = await push('busy');
    const key = await record('busy', 'a', leaked.digest);
    await rig.pins.hold(skillThing(rig.namespace, 'busy'), 'a pass', signal);
    await sweep(3);
    expect(await recordsLeft()).toContain(key);
    rig.pins.release('a pass');
    await sweep();
    expect([await recordsLeft(), await imageThere('busy', leaked.digest)]).toEqual([
      expect.not.arrayContaining([key]),
      false,
    ]);
  });
});

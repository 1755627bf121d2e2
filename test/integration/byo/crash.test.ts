import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest';
import { ANNOTATIONS } from '../../../src/api/labels.ts';
import { execOk } from '../../cluster/exec.ts';
import { Effects, startEffectProxy } from '../../support/byo/effects.ts';
import type { EngineName } from '../../support/byo/parts.ts';
import { openPlayedStage, type PlayedStage } from '../../support/byo/played.ts';
import { type ByoStage, LONG_MS } from '../../support/byo/stage.ts';
import { condition, type K8sObject } from '../../support/k8s.ts';
import { isReady, requestPass, skillMd } from '../../support/market.ts';
import { clusterOf, type OperatorAccount, withCluster } from '../../support/operator-account.ts';

const info = inject('cluster');
const BUNDLE_MS = 110_000;
const SLOW = { timeout: 15 * 60_000 };
const ENGINE = 'engine';

/** What the operator writes for a build: the lease, events, the source's own writes and packages are asked about elsewhere. */
const ofAPI = (request: string): boolean =>
  /^(?:POST|PATCH|DELETE (?!.*\/skills\/))/.test(request) &&
  /\/(?:jobs|secrets|skills|configmaps)(?:[/?]|$)/.test(request) &&
  !request.includes('skill-operator-source');
const ofStore = (request: string): boolean => /^(?:PUT|DELETE) .*\/images\//.test(request);
const ofRegistry = (request: string): boolean => request.startsWith('DELETE');

/** An effect without the names of one run. */
const kindOf = (request: string): string =>
  request
    .replace(/\?.*/, '')
    .replace(/ \/api.*\/namespaces\/[^/]+\/(\w+)(?:\/[^/]+)?/, ' $1')
    .replace(/ .*\/(images|manifests)\/.*/, ' $1');

/**
 * The operator dies after each of its effects in turn, while the answer is on its way: to the API, the bucket, the registry or an engine.
 * All of these are real but the engines; the node is played, so that every point can be had.
 */
describe('an operator that is killed', () => {
  const effects = new Effects();
  const stack = new AsyncDisposableStack();
  let played: PlayedStage;
  let stage: ByoStage;

  const throughProxy = async (account: OperatorAccount): Promise<OperatorAccount> => {
    const { server, ...trust } = clusterOf(account);
    const ca = Buffer.from(trust['certificate-authority-data'] ?? '', 'base64').toString('utf8');
    const proxy = stack.use(await startEffectProxy({ url: server, ca }, effects, ofAPI));
    return withCluster(account, { server: proxy.url, 'insecure-skip-tls-verify': true });
  };

  beforeAll(async () => {
    const store = stack.use(await startEffectProxy({ url: info.s3.endpoint }, effects, ofStore));
    // Dozens of starts: the bundle begins sooner.
    const outdir = mkdtempSync(join(tmpdir(), 'skill-operator-crash-'));
    stack.defer(() => rmSync(outdir, { recursive: true, force: true }));
    await execOk(process.execPath, ['scripts/build.ts', '--outdir', outdir, 'main', 'worker'], {
      signal: AbortSignal.timeout(BUNDLE_MS),
    });
    const args = ['--store-endpoint', store.url];
    const options = { through: throughProxy, operator: { args, main: join(outdir, 'main.js') } };
    played = await openPlayedStage(info, options, async (address) => {
      const proxy = stack.use(await startEffectProxy({ url: `http://${address}` }, effects, ofRegistry));
      return new URL(proxy.url).host;
    });
    ({ stage } = played);
    stage.onEngineWrite(() => void effects.add(ENGINE));
  });
  afterAll(async () => {
    await played?.[Symbol.asyncDispose]();
    await stack.disposeAsync();
  });

  afterEach(() => {
    effects.only = () => true;
    effects.before = () => Promise.resolve();
  });

  const edition = (engine: EngineName, name: string, number: number) => ({
    [name]: stage.skill(engine, name, stage.from(`RUN echo ${number} > /number`), {
      'SKILL.md': skillMd({ name, runtime: engine, description: `Edition ${number}.` }),
    }),
    [`${name}-2`]: {},
  });

  /** Lets the operator die at an effect of `work`, if it has so many, and start again; whether it died. */
  async function killedAt(
    number: number,
    work: () => Promise<unknown>,
    ended: () => Promise<unknown>,
  ): Promise<boolean> {
    const death = Promise.withResolvers<void>();
    effects.after(number, () => death.resolve(stage.operator.kill()));
    await work();
    const waits = ended();
    await Promise.race([death.promise, waits.catch(() => undefined)]);
    effects.rest();
    const died = !stage.operator.isRunning;
    if (died) {
      await death.promise;
      await stage.operator.start();
    }
    await waits.catch((error: Error) => {
      throw new Error(`${error.message}; killed after ${effects.chosen}`);
    });
    return died;
  }

  /** What is there of a skill outside the cluster is exactly what its status says. */
  async function expectOneOfEach(skill: K8sObject, when: string): Promise<void> {
    const { templateID, image, engine } = skill.status.served;
    expect(stage.templates(engine, skill.status.skillName), when).toEqual([templateID]);
    expect(await stage.images(skill.metadata.name, engine), when).toEqual([image.split('@')[1]]);
    expect(await stage.records(skill.metadata.name, engine), when).toHaveLength(1);
    expect(condition(skill, 'Stalled'), when).toBeUndefined();
    const inputs = (await stage.jobs(skill.metadata.name)).map(
      ({ metadata }) => metadata.annotations?.['skills.tfrobot.io/input-hash'],
    );
    expect(new Set(inputs).size, when).toBe(inputs.length);
  }

  const isSettled = (number: number) => (object: K8sObject | undefined) =>
    object !== undefined &&
    isReady(object) &&
    object.status.description === `Edition ${number}.` &&
    !object.status.retired;

  /** A market with one skill that is served in edition 0, and hands on it. */
  async function begin(name: string, engine: EngineName) {
    const ref = stage.operator.skill(`${name}.p.${name}`);
    const spec = { skillTemplate: { versionHistoryLimit: 0 } };
    const { push, repository, source } = await stage.market(name, edition(engine, name, 0), spec);
    const settled = (number: number) =>
      stage.bare.waitFor(ref, isSettled(number), { timeoutMs: LONG_MS, what: `edition ${number}` });
    await settled(0);
    // A request that dies with the operator needs no second one: the next start looks at every source.
    const change = (number: number) => push(edition(engine, name, number)).catch(() => undefined);
    const remove = async () => {
      await repository.commit({}, { remove: [`plugins/p/skills/${name}`] });
      await requestPass(stage.bare, source).catch(() => undefined);
    };
    return { ref, settled, change, remove };
  }

  /** Replaces a version again and again, with a death at every effect that counts; which those were. */
  async function replaceAll(name: string, engine: EngineName): Promise<string[]> {
    const { settled, change } = await begin(name, engine);
    const points: string[] = [];
    for (let number = 1; ; number++) {
      const died = await killedAt(
        number,
        () => change(number),
        () => settled(number),
      );
      await expectOneOfEach(await settled(number), `${number}: ${effects.chosen}`);
      if (!died) return points;
      points.push(kindOf(effects.chosen));
    }
  }

  test('after any effect of a replacement ends where an undisturbed one does', SLOW, async () => {
    expect(await replaceAll('replace', 'e2b')).toMatchInlineSnapshot(`
      [
        "POST jobs",
        "POST secrets",
        "PATCH jobs",
        "PATCH skills/status",
        "PUT images",
        "PATCH skills/status",
        "engine",
        "PATCH skills/status",
        "engine",
        "PATCH skills/status",
        "engine",
        "DELETE images",
        "DELETE manifests",
        "PATCH skills/status",
      ]
    `);
  });

  test('after any call that changes something at CubeSandbox likewise', SLOW, async () => {
    effects.only = (what) => what === ENGINE;
    expect(await replaceAll('cube', 'cubesandbox')).toMatchInlineSnapshot(`
      [
        "engine",
        "engine",
      ]
    `);
  });

  test('after any effect of a deletion, or the first one of a new Skill, likewise', SLOW, async () => {
    const { ref, settled, change, remove } = await begin('goes', 'e2b');
    const points: string[] = [];
    for (let number = 1; ; number++) {
      const died = await killedAt(number, remove, () => stage.bare.waitGone(ref, { timeoutMs: LONG_MS }));
      const when = `${number}: ${effects.chosen}`;
      expect(stage.templates('e2b', 'goes'), when).toEqual([]);
      expect(await stage.images(ref.name, 'e2b'), when).toEqual([]);
      expect(await stage.records(ref.name, 'e2b'), when).toEqual([]);
      expect(await stage.ledger(), when).toEqual([]);
      if (!died) break;
      points.push(kindOf(effects.chosen));
      const again = await killedAt(
        number === 1 ? 1 : Number.POSITIVE_INFINITY,
        () => change(number),
        () => settled(number),
      );
      if (again) points.push(`new: ${kindOf(effects.chosen)}`);
      await expectOneOfEach(await settled(number), 'anew');
    }
    expect(points).toMatchInlineSnapshot(`
      [
        "DELETE jobs",
        "new: PATCH skills",
        "engine",
        "DELETE images",
        "DELETE manifests",
        "PATCH skills",
      ]
    `);
  });

  test('runs the pass again, and says nothing, when the Skill changes just before an effect', SLOW, async () => {
    const ref = stage.operator.skill('moves.p.moves');
    let changed = false;
    // The look at the Skill as it is now, directly before the first write.
    effects.before = async (request) => {
      if (changed || !request.startsWith('GET') || !request.endsWith('/skills/moves.p.moves')) return;
      changed = true;
      await stage.bare.patch(ref, { spec: { versionHistoryLimit: 3 } });
    };
    await stage.market('moves', edition('e2b', 'moves', 0));
    await stage.bare.waitFor(ref, isSettled(0), { timeoutMs: LONG_MS });
    expect(changed).toBe(true);
    expect((await stage.events()).filter(({ reason }) => reason === 'Conflict')).toEqual([]);
  });

  test('forgets neither new content nor a wish for a rebuild when its first write fails', SLOW, async () => {
    const ref = stage.operator.skill('cut.p.cut');
    let cuts = 0;
    effects.before = (request) => {
      const cut = cuts < 1 && request.startsWith('POST') && request.includes('/jobs');
      if (!cut) return Promise.resolve();
      cuts++;
      return Promise.reject(new Error('cut'));
    };
    await stage.market('cut', edition('e2b', 'cut', 0));
    await stage.bare.waitFor(ref, isSettled(0), { timeoutMs: LONG_MS });
    expect(cuts).toBe(1);
    cuts = 0;
    await stage.bare.annotate(ref, { [ANNOTATIONS.rebuild]: 'please' });
    const isRebuilt = (object: K8sObject) => isSettled(0)(object) && object.status.lastHandledRebuild === 'please';
    await stage.bare.waitFor(ref, isRebuilt, { timeoutMs: LONG_MS });
    expect(cuts).toBe(1);
    expect(await stage.jobs(ref.name)).toHaveLength(2);
  });
});

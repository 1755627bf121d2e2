import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { stringify } from 'yaml';
import type { Skill } from '../../../src/api/skill.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { silentLogger } from '../../../src/base/log.ts';
import { createMetrics } from '../../../src/base/metrics.ts';
import { Health } from '../../../src/controllers/health.ts';
import { TemplateHeal } from '../../../src/controllers/sweep/templates.ts';
import { E2BEngine } from '../../../src/engine/e2b.ts';
import { Cache } from '../../../src/kube/store.ts';
import { E2BStub } from '../../contract/engine/stubs/e2b.ts';
import { bookmark } from '../../support/audit.ts';
import { condition } from '../../support/k8s.ts';
import { applySource, marketplace, newRepository, skillMd, waitNotReady, waitReady } from '../../support/market.ts';
import { type Operator, startOperator } from '../../support/operator.ts';
import { served, skill } from '../../unit/controllers/objects.ts';
import { ownWrites, tally, waitQuiet } from '../invariants/support.ts';
import { newRig, type Rig, signal } from './rig.ts';

const info = inject('cluster');
const KEY = 'e2b_aaaaaaaaaaaaaaaa';
const NAMES = { cpuCount: 2, memoryMB: 1024 };

/** Registers a template under a name, as an administrator would; its id. */
async function register(stub: E2BStub, name: string): Promise<string> {
  const response = await fetch(`${stub.url}/v3/templates`, {
    method: 'POST',
    headers: { 'x-api-key': KEY, 'content-type': 'application/json' },
    body: JSON.stringify({ name, ...NAMES }),
  });
  expect(response.status).toBe(202);
  return ((await response.json()) as { templateID: string }).templateID;
}

describe('a platform template that the engine does not know', () => {
  let stub: E2BStub;
  let operator: Operator;
  let dir: string;
  beforeAll(async () => {
    stub = await new E2BStub().listen();
    await register(stub, 'e2b-node');
    dir = mkdtempSync(join(tmpdir(), 'platform-test-'));
    const file = join(dir, 'settings.yaml');
    writeFileSync(file, stringify({ engines: { e2b: { url: stub.url, keySecret: 'e2b' } } }));
    operator = await startOperator(info, { args: ['--config', file, '--sweep-interval-hours', '0.0006'] });
    await operator.k8s.apply({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'e2b', namespace: operator.account.namespace },
      stringData: { apiKey: KEY },
    });
    const repository = await newRepository(operator);
    const skills = { py: 'e2b::python', node: 'e2b::node', cube: 'cubesandbox::python', text: 'prompt-only' };
    const files = Object.entries(skills).map(([name, runtime]) => [name, skillMd({ name, runtime })]);
    await repository.commit(marketplace({ docs: Object.fromEntries(files) }));
    await applySource(operator, 'team', repository);
  });
  afterAll(async () => {
    await operator?.[Symbol.asyncDispose]();
    await stub?.[Symbol.asyncDispose]();
    rmSync(dir, { recursive: true, force: true });
  });

  const py = () => operator.skill('team.docs.py');

  test('is said of the Skills that run on it, and of no others', async () => {
    const object = await waitNotReady(operator.k8s, py(), 'TemplateNotFound');
    expect(condition(object, 'Registered')).toMatchObject({ status: 'False', reason: 'TemplateNotFound' });
    expect(condition(object, 'Ready')?.message).toContain(
      'E2B does not know the template e2b-python of runtime e2b::python',
    );
    // What a sandbox starts from is as the map says; the version is served as before.
    expect(object.status).toMatchObject({ templateIDs: { e2b: 'e2b-python' } });
    for (const name of ['node', 'cube', 'text']) await waitReady(operator.k8s, operator.skill(`team.docs.${name}`));
  });

  test('stays so over a restart without a write, and while the engine is down', async () => {
    await waitQuiet(operator);
    const mark = bookmark(info);
    stub.fail({ method: 'GET', path: /./, times: 4, answer: { status: 503, text: 'down' } });
    await operator.restart();
    await waitQuiet(operator, 6_000);
    const writes = ownWrites(operator, mark).filter(({ resource }) => resource.startsWith('skills'));
    expect(tally(writes)).toEqual({});
    await waitNotReady(operator.k8s, py(), 'TemplateNotFound');
  });

  test('ends by itself once the template is registered, and begins when it is lost', async () => {
    const id = await register(stub, 'e2b-python');
    await waitReady(operator.k8s, py());
    stub.templates.delete(id);
    await waitNotReady(operator.k8s, py(), 'TemplateNotFound');
  });
});

describe('templates that the engine lost', () => {
  let stub: E2BStub;
  let rig: Rig;
  const ids: string[] = [];
  beforeAll(async () => {
    rig = await newRig(info);
    stub = await new E2BStub().listen();
    for (let i = 0; i < 10; i++) ids.push(await register(stub, `pdf-00000000000${i}`));
  });
  afterAll(async () => {
    await rig?.[Symbol.asyncDispose]();
    await stub?.[Symbol.asyncDispose]();
  });

  /** Heal over ten Skills, each with a template of its own; `suspended` ones are left alone. */
  function healOf(suspended: number[] = []) {
    const skills = new Cache<Skill>();
    for (const [i, templateID] of ids.entries()) {
      const version = { ...served(), runtime: 'e2b', engine: 'e2b', templateID, image: 'r.example/x@sha256:a' };
      const spec = suspended.includes(i) ? { suspend: true } : {};
      skills.put(skill(`s-${i}`, spec, { resourceVersion: `${i + 1}` }, { served: version }), 'stream');
    }
    const engine = new E2BEngine({ url: stub.url, key: async () => ({ value: KEY, hosts: undefined }) });
    const health = new Health();
    const woken: string[] = [];
    const wake = (key: string) => void woken.push(key);
    const rest = { clock: systemClock, logger: silentLogger, metrics: createMetrics() };
    const heal = new TemplateHeal({ skills, engines: { e2b: engine }, health, state: rig.state, wake, ...rest });
    return { heal, health, woken };
  }
  const take = (...indexes: number[]) => {
    const taken = indexes.map((i) => [ids[i] as string, stub.templates.get(ids[i] as string)] as const);
    for (const [id] of taken) stub.templates.delete(id);
    return () => {
      for (const [id, template] of taken) if (template) stub.templates.set(id, template);
    };
  };

  test('none: one list and nothing else', async () => {
    const { heal, woken } = healOf();
    stub.takeCalls();
    expect(await heal.run(signal)).toBe(false);
    expect([stub.takeCalls(), woken]).toEqual([['GET /v2/templates'], []]);
  });

  test('one: its Skill hears of it, a suspended one does not', async () => {
    const back = take(3, 4);
    const { heal, health, woken } = healOf([4]);
    expect(await heal.run(signal)).toBe(false);
    expect([woken, health.lostTemplate('ns/s-3'), health.lostTemplate('ns/s-4')]).toEqual([
      ['ns/s-3'],
      ids[3],
      undefined,
    ]);
    back();
  });

  test('an engine that does not answer says nothing about its templates', async () => {
    const back = take(3);
    stub.fail({ path: /./, times: 20, answer: { status: 503, text: 'down' } });
    const { heal, woken } = healOf();
    expect([await heal.run(signal), woken]).toEqual([false, []]);
    back();
  });

  test('four of ten: EngineSuspect, until a person allows it', async () => {
    stub.takeCalls();
    const back = take(0, 1, 2, 3);
    const { heal, woken } = healOf();
    await expect.poll(() => heal.run(signal), { timeout: 30_000 }).toBe(true);
    const { message, token, allow } = JSON.parse((await rig.stateMap())?.data['EngineSuspect.e2b']);
    expect(message).toBe(
      `E2B lists 4 of 10 registered templates no more, such as ${ids[0]}; check its URL and its key, or restore the engine`,
    );
    expect(allow).toContain(`skills.tfrobot.io/allow-engine-heal=${token}`);
    expect(woken).toEqual([]);
    const ref = { apiVersion: 'v1', kind: 'ConfigMap', name: 'skill-operator-state', namespace: rig.home };
    await rig.k8s.annotate(ref, { 'skills.tfrobot.io/allow-engine-heal': token });
    expect(await heal.run(signal)).toBe(false);
    expect(woken).toEqual(['ns/s-0', 'ns/s-1', 'ns/s-2', 'ns/s-3']);
    expect((await rig.stateMap())?.data ?? {}).toEqual({});
    back();
  });
});

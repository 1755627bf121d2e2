import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { stringify } from 'yaml';
import { condition } from '../../support/k8s.ts';
import { marketplace, skillMd, waitNotReady, waitReady } from '../../support/market.ts';
import { type Operator, startOperator } from '../../support/operator.ts';
import { eventsOf, messageOf, newMarket } from './harness.ts';

let dir: string;
let operator: Operator;

/** Writes a settings file with this map of platform templates and returns the flags that name it. */
async function withMap(tier1: Record<string, string>): Promise<string[]> {
  const file = join(dir, 'config.yaml');
  await writeFile(file, stringify({ tier1 }));
  return ['--config', file];
}

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'settings-test-'));
  operator = await startOperator(inject('cluster'), { args: await withMap({ 'e2b::python': 'tpl-one' }) });
});
afterAll(async () => {
  await operator?.[Symbol.asyncDispose]();
  await rm(dir, { recursive: true, force: true });
});

const MARKET = marketplace({
  run: {
    plain: {},
    py: skillMd({ name: 'py', runtime: 'e2b::python' }),
    js: skillMd({ name: 'js', runtime: 'e2b::node' }),
  },
});

test('a runtime without an entry in the map is stored and waits with TemplateNotConfigured; the others are served', async () => {
  await newMarket(operator, 'map', MARKET);
  const skill = await waitNotReady(operator.k8s, operator.skill('map.run.js'), 'TemplateNotConfigured');
  expect(skill.status).toMatchObject({ tier: 1, runtime: 'e2b::node', observedGeneration: 1 });
  expect(skill.status.candidate).toMatchObject({ phase: 'Queued', reason: 'TemplateNotConfigured' });
  expect([skill.status.served, skill.status.templateIDs]).toEqual([undefined, undefined]);
  expect(condition(skill, 'Registered')).toMatchObject({ status: 'False', reason: 'TemplateNotConfigured' });
  expect(messageOf(skill, 'Stalled')).toMatchInlineSnapshot(
    `"the operator's map of platform templates has no entry for runtime e2b::node; ask the administrator to add it to the operator's settings"`,
  );
  const served = await waitReady(operator.k8s, operator.skill('map.run.py'));
  expect(served.status.templateIDs).toEqual({ e2b: 'tpl-one' });
});

test('a changed map on restart rewrites the template ids of its skills alone, without a PUT', async () => {
  const plain = await waitReady(operator.k8s, operator.skill('map.run.plain'));
  const before = await waitReady(operator.k8s, operator.skill('map.run.py'));
  await operator.restart({ args: await withMap({ 'e2b::python': 'tpl-two', 'e2b::node': 'tpl-node' }) });
  const skill = await operator.k8s.waitFor(
    operator.skill('map.run.py'),
    ({ status }) => status.templateIDs?.e2b === 'tpl-two',
  );
  expect(skill.status.served).toEqual({ ...before.status.served, templateID: 'tpl-two' });
  expect(condition(skill, 'Ready')?.status).toBe('True');
  expect(skill.status.observed.config).not.toBe(before.status.observed.config);
  const js = await waitReady(operator.k8s, operator.skill('map.run.js'));
  expect(js.status.templateIDs).toEqual({ e2b: 'tpl-node' });
  expect(js.status.candidate).toBeUndefined();
  expect((await operator.metrics()).value('skill_operator_store_requests_total', { operation: 'put' })).toBe(0);
  const untouched = await waitReady(operator.k8s, operator.skill('map.run.plain'));
  expect(untouched.metadata.resourceVersion).toBe(plain.metadata.resourceVersion);
  await expect
    .poll(() => eventsOf(operator, operator.skill('map.run.py')), { timeout: 20_000 })
    .toEqual([
      expect.stringMatching(/^Normal Registered: version \w+ is served with template tpl-two \(before: tpl-one\)$/),
    ]);
});

test('an entry that is taken out of the map leaves the served version as it is', async () => {
  const before = await waitReady(operator.k8s, operator.skill('map.run.py'));
  await operator.restart({ args: await withMap({ 'e2b::node': 'tpl-node' }) });
  const skill = await operator.k8s.waitFor(
    operator.skill('map.run.py'),
    ({ status }) => status.observed.config !== before.status.observed.config,
  );
  expect(skill.status.served).toEqual(before.status.served);
  expect(condition(skill, 'Serving')?.status).toBe('True');
});

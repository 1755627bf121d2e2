import { afterAll, afterEach, beforeAll, expect, inject } from 'vitest';
import { API_VERSION } from '../../../src/api/labels.ts';
import { eventually } from '../../support/eventually.ts';
import type { TestRepository, TestTree } from '../../support/git.ts';
import { condition, type K8sObject, type Ref } from '../../support/k8s.ts';
import { statusFaults } from '../../support/kstatus.ts';
import { applySource, newRepository, waitReady } from '../../support/market.ts';
import { type Operator, type OperatorOptions, startOperator } from '../../support/operator.ts';

/** Everything of both kinds in the operator's namespace. */
async function allObjects({ k8s, namespace }: Operator): Promise<K8sObject[]> {
  const lists = ['MarketplaceSource', 'Skill'].map((kind) => k8s.list({ apiVersion: API_VERSION, kind, namespace }));
  return (await Promise.all(lists)).flat();
}

/** Skills whose name begins with `<source>.`, by the rest of their name. */
export async function skillsOf({ k8s, namespace }: Operator, source: string): Promise<Map<string, K8sObject>> {
  const skills = await k8s.list({ apiVersion: API_VERSION, kind: 'Skill', namespace });
  const prefix = `${source}.`;
  const own = skills.filter(({ metadata }) => metadata.name.startsWith(prefix));
  return new Map(own.map((skill) => [skill.metadata.name.slice(prefix.length), skill]));
}

/** Waits until the names of the Skills of a source are exactly these. */
export async function waitSkills(operator: Operator, source: string, names: string[]): Promise<Map<string, K8sObject>> {
  return await eventually(
    async () => {
      const skills = await skillsOf(operator, source);
      expect([...skills.keys()].sort()).toEqual([...names].sort());
      return skills;
    },
    { timeoutMs: 30_000, what: `the Skills of ${source}` },
  );
}

/** Makes a repository with these files and a source of it; returns when the source is Ready. */
export async function newMarket(
  operator: Operator,
  name: string,
  files: TestTree,
  spec: Record<string, unknown> = {},
): Promise<{ repository: TestRepository; source: Ref; commit: string }> {
  const repository = await newRepository(operator);
  const commit = await repository.commit(files);
  const source = await applySource(operator, name, repository, spec);
  await waitReady(operator.k8s, source);
  return { repository, source, commit };
}

/** The events about one object, as `type reason: note`, oldest first. */
export async function eventsOf({ k8s, namespace }: Operator, ref: Ref): Promise<string[]> {
  const events = await k8s.list({ apiVersion: 'events.k8s.io/v1', kind: 'Event', namespace });
  return events
    .filter(({ regarding }) => regarding.kind === ref.kind && regarding.name === ref.name)
    .sort((a, b) => (a.eventTime < b.eventTime ? -1 : 1))
    .map(({ type, reason, note }) => `${type} ${reason}: ${note}`);
}

/** `Type=Status Reason` of every condition, for snapshots. */
export const conditionsOf = (object: K8sObject): string[] =>
  (object.status?.conditions ?? []).map(
    ({ type, status, reason }: { type: string; status: string; reason: string }) => `${type}=${status} ${reason}`,
  );

/** The message of a condition with ids, namespaces and ports replaced, for snapshots. */
export function messageOf(object: K8sObject, type: string): string {
  const message = condition(object, type)?.message ?? '';
  return message
    .replaceAll(/\b[0-9a-f]{40}\b/g, '<commit>')
    .replaceAll(/\b(?:version) [0-9a-f]{12}\b/g, 'version <version>')
    .replaceAll(object.metadata.namespace ?? ' ', '<namespace>')
    .replaceAll(/127\.0\.0\.1:\d+/g, '<host>')
    .replaceAll(/market-[0-9a-f]{10}/g, '<repository>');
}

/** The operator of a test file; use `operator` within tests only. */
export interface Harness {
  readonly operator: Operator;
}

/**
 * One operator for all tests of a file. After each test it is alive, no pass has panicked, and every status in the namespace obeys
 * the rules of kstatus.
 */
export function useOperator(options: OperatorOptions = {}): Harness {
  let running: Operator | undefined;
  const harness = {
    get operator() {
      if (!running) throw new Error('the operator is not up yet');
      return running;
    },
  };
  beforeAll(async () => {
    running = await startOperator(inject('cluster'), options);
  });
  afterEach(async () => {
    const { operator } = harness;
    await operator.check();
    expect((await allObjects(operator)).flatMap(statusFaults)).toEqual([]);
    const panics = (await operator.metrics()).value('controller_runtime_reconcile_total', { result: 'panic' });
    expect(
      panics,
      operator
        .logs()
        .filter(({ level }) => level === 'error')
        .map(String)
        .join('\n'),
    ).toBe(0);
  });
  afterAll(() => running?.[Symbol.asyncDispose]());
  return harness;
}

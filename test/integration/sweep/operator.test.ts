import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { stringify } from 'yaml';
import { type Cluster, startCluster } from '../../cluster/start.ts';
import { E2BStub } from '../../contract/engine/stubs/e2b.ts';
import { eventually } from '../../support/eventually.ts';
import type { K8sObject } from '../../support/k8s.ts';
import {
  applySource,
  marketplace,
  newRepository,
  requestPass,
  skillMd,
  waitNotReady,
  waitReady,
} from '../../support/market.ts';
import { type Operator, startOperator } from '../../support/operator.ts';
import { listObjects, s3Client } from '../../support/s3.ts';
import { startRegistry, type TestRegistry } from '../build/registries.ts';
import { changeSkill, manySkills, waitCounts } from '../invariants/support.ts';

const shared = inject('cluster');
/** A sweep every two seconds, a grace of a second. */
const OFTEN = ['--sweep-interval-hours', '0.0006', '--sweep-grace-hours', '0.0003'];

// An operator that sees every namespace cannot share a cluster with those of other tests.
describe.skipIf(shared.auditLog === undefined)('the operator of a whole cluster', () => {
  let cluster: Cluster;
  let operator: Operator;
  beforeAll(async () => {
    cluster = await startCluster({ kubeconfig: '' });
    operator = await startOperator(cluster.info, { watchAll: true, args: OFTEN });
  });
  afterAll(async () => {
    await operator?.[Symbol.asyncDispose]();
    await cluster?.stop();
  });

  const keys = async () => (await listObjects(cluster.info.s3, operator.bucket)).map(({ key }) => key);
  const has = async (digest: string) =>
    (await keys()).some((key) => key.includes(`/packages/`) && key.includes(digest));
  const gone = async (digest: string) =>
    await eventually(async () => !(await has(digest)), { timeoutMs: 40_000, what: `the end of ${digest}` });

  test('deletes versions that no Skill keeps any more, and with the last Skill nothing until a person allows it', async () => {
    const { k8s, account } = operator;
    const repository = await newRepository(operator);
    await repository.commit(marketplace(manySkills('s', 12)));
    const source = await applySource(operator, 'team', repository);
    await waitCounts(operator, source, 12);
    const versions: string[] = [];
    for (const generation of [1, 2]) {
      const ref = operator.skill('team.p0.s-3');
      versions.push((await waitReady(k8s, ref)).status.served.digest);
      const commit = await changeSkill(repository, 's', 3, generation);
      await requestPass(k8s, source);
      await k8s.waitFor(ref, ({ status }) => status?.served?.commit === commit);
    }
    // Of the two old versions the history keeps one.
    await gone(versions[0] as string);
    expect(await has(versions[1] as string)).toBe(true);
    expect((await keys()).filter((key) => key.endsWith('/manifest.json'))).toHaveLength(13);

    await k8s.delete(source);
    const state = { apiVersion: 'v1', kind: 'ConfigMap', name: 'skill-operator-state', namespace: account.namespace };
    const blocked = await k8s.waitFor(state, ({ data }) => data?.SweepBlocked !== undefined, { timeoutMs: 40_000 });
    const { message, token } = JSON.parse(blocked.data.SweepBlocked);
    expect(message).toMatch(
      /^the cluster has no Skills at all; that would delete \d+ of 13 packages; nothing is deleted/,
    );
    expect((await keys()).filter((key) => key.endsWith('/manifest.json'))).toHaveLength(13);
    const events = await k8s.list({ apiVersion: 'events.k8s.io/v1', kind: 'Event', namespace: account.namespace });
    expect(events.filter(({ reason }) => reason === 'SweepBlocked')).toHaveLength(1);
    await k8s.annotate(state, { 'skills.tfrobot.io/allow-sweep': token });
    await eventually(async () => !(await keys()).some((key) => key.endsWith('/manifest.json')), {
      timeoutMs: 40_000,
      what: 'the packages to go',
    });
  });

  test('heals with sweeps off, and neither marks nor deletes', async () => {
    await operator.restart({ args: ['--sweep', 'false'] });
    const rubbish = `v1/${(await operator.waitForLog('working')).installation}/packages/nobody/${'e'.repeat(64)}/package.tar`;
    await s3Client(cluster.info.s3).putObject(operator.bucket, rubbish, 'x');
    const marked = async () => (await operator.metrics()).value('skill_operator_upkeep_total', { action: 'marked' });
    const ref = operator.skill('team.p0.s-0');
    const repository = await newRepository(operator);
    await repository.commit(marketplace(manySkills('s', 1)));
    await applySource(operator, 'team', repository);
    await waitReady(operator.k8s, ref);
    await eventually(
      async () => (await operator.metrics()).value('skill_operator_store_requests_total', { operation: 'list' }) >= 3,
      { timeoutMs: 40_000, what: 'some heals' },
    );
    expect([await marked(), (await keys()).includes(rubbish)]).toEqual([0, true]);
  });
});

describe('a template of an own image that the engine lost', () => {
  const KEY = 'e2b_aaaaaaaaaaaaaaaa';
  let stub: E2BStub;
  let registry: TestRegistry;
  let operator: Operator;
  let dir: string;
  beforeAll(async () => {
    stub = await new E2BStub().listen();
    // Nothing is built: everybody may push to this registry.
    registry = await startRegistry();
    dir = mkdtempSync(join(tmpdir(), 'lost-template-'));
    const file = join(dir, 'settings.yaml');
    const pinned = `registry.example/kaniko@sha256:${'a'.repeat(64)}`;
    const build = {
      ...{ namespace: 'default', operatorImage: 'registry.example/operator:1', builderImage: pinned },
      registry: { host: registry.host, insecure: true },
    };
    writeFileSync(file, stringify({ build, engines: { e2b: { url: stub.url, keySecret: 'e2b' } } }));
    operator = await startOperator(shared, { args: ['--config', file, '--sweep-interval-hours', '0.0006'] });
    const metadata = { name: 'e2b', namespace: operator.account.namespace };
    await operator.k8s.apply({ apiVersion: 'v1', kind: 'Secret', metadata, stringData: { apiKey: KEY } });
  });
  afterAll(async () => {
    await operator?.[Symbol.asyncDispose]();
    await registry?.[Symbol.asyncDispose]();
    await stub?.[Symbol.asyncDispose]();
    rmSync(dir, { recursive: true, force: true });
  });

  test('is registered again from the image, without a build, and the version stays served meanwhile', async () => {
    const { k8s } = operator;
    const repository = await newRepository(operator);
    const files = {
      'SKILL.md': skillMd({ name: 'pdf', runtime: 'e2b' }),
      '.e2b.dockerfile': 'FROM python:3.12-slim\n',
    };
    await repository.commit(marketplace({ docs: { pdf: files } }));
    await applySource(operator, 'team', repository);
    const ref = operator.skill('team.docs.pdf');
    const waiting = await waitNotReady(k8s, ref, 'RegistryAnonymousWrites');
    // As if it had been built and registered before.
    const { candidate, ...status } = waiting.status;
    const { phase: _p, reason: _r, message: _m, ...version } = candidate;
    const image = `${registry.host}/team/pdf-e2b@sha256:${'b'.repeat(64)}`;
    const served = { ...version, image, templateID: 'abcdefghij0123456789' };
    const { apiVersion, kind, metadata } = waiting;
    const object = { apiVersion, kind, metadata: { name: metadata.name, namespace: metadata.namespace } };
    await k8s.apply(
      { ...object, status: { ...status, served, templateIDs: { e2b: served.templateID } } } as K8sObject,
      {
        subresource: 'status',
        manager: 'skill-operator-skill',
      },
    );
    const registering = await k8s.waitFor(ref, (skill) => skill.status?.candidate?.phase === 'Registering', {
      timeoutMs: 40_000,
    });
    expect(registering.status.served.templateID).toBe(served.templateID);
    const again = await waitReady(k8s, ref, 60_000);
    const [template] = [...stub.templates.values()];
    expect(again.status.templateIDs).toEqual({ e2b: template?.templateID });
    expect(again.status.served).toMatchObject({ image, digest: version.digest });
  });
});

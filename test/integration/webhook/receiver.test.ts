import { expect, inject, test } from 'vitest';
import { bookmark, writesSince } from '../../support/audit.ts';
import { eventually } from '../../support/eventually.ts';
import type { K8sObject } from '../../support/k8s.ts';
import {
  applySource,
  isObserved,
  marketplace,
  newRepository,
  requestPass,
  skillMd,
  waitReady,
} from '../../support/market.ts';
import { startOperator } from '../../support/operator.ts';
import { newMarket, useOperator } from '../controllers/harness.ts';
import { applyToken, deliver, type Reply, receiverOf, signed, TOKEN } from './deliver.ts';

const harness = useOperator({ args: ['--webhook-address', '127.0.0.1:0'] });
const PUSH = JSON.stringify({ ref: 'refs/heads/main', commits: [{ message: 'x'.repeat(2_000) }] });
const hook = (name: string) => ({ webhook: { secretRef: { name } }, interval: '1h' });
/** A marketplace of one skill; the name is the test's own, since a namespace has each name once. */
const version = (name: string, description: string) =>
  marketplace({ p: { [name]: { 'SKILL.md': skillMd({ name, description }) } } });

/** Waits until the Skill serves the description. */
const waitServed = (name: string, description: string): Promise<K8sObject> =>
  harness.operator.k8s.waitFor(
    harness.operator.skill(`${name}.p.${name}`),
    (skill) => skill.status?.served !== undefined && skill.status.description === description && isObserved(skill),
    { timeoutMs: 60_000, what: `${name} to serve "${description}"` },
  );

test('a push becomes a served Skill without waiting for the interval, and leaves no trace that a GitOps tool would see', async () => {
  const { operator } = harness;
  await applyToken(operator, 'hook');
  const { repository, source } = await newMarket(operator, 'pushed', version('pushed', 'first'), hook('hook'));
  const before = await waitReady(operator.k8s, source);
  await waitServed('pushed', 'first');
  await repository.commit(version('pushed', 'second'));
  const reply = await deliver(await receiverOf(operator), `${operator.namespace}/pushed`, PUSH, signed(PUSH));
  expect([reply.status, reply.text]).toEqual([202, 'accepted: a pass starts\n']);
  await waitServed('pushed', 'second');
  const after = await waitReady(operator.k8s, source);
  const { metadata, spec, status } = after;
  expect(status.lastWebhookAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  expect(spec).toEqual(before.spec);
  expect([metadata.generation, metadata.annotations]).toEqual([
    before.metadata.generation,
    before.metadata.annotations,
  ]);
  const own = metadata.managedFields?.filter(({ manager }) => manager === 'skill-operator-webhook');
  expect(own).toEqual([
    expect.objectContaining({
      operation: 'Apply',
      subresource: 'status',
      fieldsV1: { 'f:status': { 'f:lastWebhookAt': {} } },
    }),
  ]);
  await operator.waitForLog('webhook delivery accepted');
  expect(JSON.stringify(operator.logs())).not.toContain(TOKEN);
});

test('every Git host is understood; pings and other events start nothing', async () => {
  const { operator } = harness;
  await applyToken(operator, 'hosts');
  const { source } = await newMarket(operator, 'hosts', version('hosts', 'one'), hook('hosts'));
  const url = await receiverOf(operator);
  const key = `${operator.namespace}/hosts`;
  const send = (headers: Record<string, string>) => deliver(url, key, PUSH, headers);
  expect((await send(signed(PUSH, 'ping'))).status).toBe(200);
  expect(await send(signed(PUSH, 'issues'))).toMatchObject({
    status: 202,
    text: 'ignored: only pushes start a pass\n',
  });
  expect((await operator.k8s.get(source))?.status.lastWebhookAt).toBeUndefined();
  const mac = (signed(PUSH)['x-hub-signature-256'] ?? '').replace('sha256=', '');
  const hosts: Record<string, Record<string, string>> = {
    github: signed(PUSH),
    gitlab: { 'x-gitlab-event': 'Push Hook', 'x-gitlab-token': TOKEN },
    gitea: { 'x-gitea-event': 'push', 'x-github-event': 'push', 'x-gitea-signature': mac },
    forgejo: { 'x-forgejo-event': 'push', 'x-gitea-event': 'push', 'x-forgejo-signature': mac },
    bitbucket: { 'x-event-key': 'repo:push', 'x-hub-signature': `sha256=${mac}` },
    generic: { 'x-signature': `sha256=${mac}` },
  };
  for (const [host, headers] of Object.entries(hosts)) expect((await send(headers)).status, host).toBe(202);
  const metrics = await operator.metrics();
  const taken = (host: string) =>
    ['accepted', 'joined'].reduce(
      (sum, result) => sum + metrics.value('skill_operator_webhook_deliveries_total', { host, result }),
      0,
    );
  for (const host of Object.keys(hosts)) expect(taken(host), host).toBeGreaterThanOrEqual(1);
});

test('the answer tells nobody which sources exist', async () => {
  const { operator } = harness;
  const repository = await newRepository(operator);
  await repository.commit(version('quiet', 'one'));
  await applyToken(operator, 'told');
  await applyToken(operator, 'short', 'short');
  const specs = { told: hook('told'), bare: {}, nosecret: hook('missing'), short: hook('short') };
  for (const [name, spec] of Object.entries(specs)) {
    await waitReady(operator.k8s, await applySource(operator, `quiet-${name}`, repository, spec));
  }
  const problems = async (name: string) => (await operator.k8s.get(operator.source(`quiet-${name}`)))?.status.problems;
  expect(await problems('nosecret')).toMatchObject([{ path: 'spec.webhook', reason: 'SecretNotFound' }]);
  expect(await problems('short')).toMatchObject([{ path: 'spec.webhook', reason: 'SecretInvalid' }]);
  expect(await problems('told')).toBeUndefined();
  const url = await receiverOf(operator);
  const { namespace } = operator;
  const replies: Reply[] = [];
  for (const key of ['told', 'bare', 'nosecret', 'short', 'none'].map((name) => `${namespace}/quiet-${name}`)) {
    for (const headers of [signed(PUSH, 'push', 'another-token-of-somebody'), { 'x-github-event': 'push' }]) {
      replies.push(await deliver(url, key, PUSH, headers as Record<string, string>));
    }
  }
  replies.push(await deliver(url, 'kube-system/none', PUSH, signed(PUSH)));
  expect(new Set(replies.map((reply) => JSON.stringify(reply))).size).toBe(1);
  expect(replies[0]?.status).toBe(401);
  // A Secret that comes later is found, and the problem goes with the next pass.
  await applyToken(operator, 'missing');
  await eventually(
    async () => expect((await deliver(url, `${namespace}/quiet-nosecret`, PUSH, signed(PUSH))).status).toBe(202),
    { timeoutMs: 60_000, what: 'the new Secret to count' },
  );
  await eventually(async () => expect(await problems('nosecret')).toBeUndefined(), {
    timeoutMs: 30_000,
    what: 'the problem to go',
  });
});

test('a flood costs next to nothing, and is seen in the metrics', async () => {
  const { operator } = harness;
  await applyToken(operator, 'flood');
  const { repository } = await newMarket(operator, 'flood', version('flood', 'one'), hook('flood'));
  await waitServed('flood', 'one');
  const url = await receiverOf(operator);
  const key = `${operator.namespace}/flood`;
  const reads = async () => (await operator.metrics()).value('rest_client_requests_total', { method: 'get' });
  const before = await reads();
  const start = performance.now();
  const bad = signed(PUSH, 'push', 'another-token-of-somebody');
  const flood = Array.from({ length: 50 }, async (_, at) => {
    const target = at % 2 === 0 ? key : `${operator.namespace}/unknown-${at}`;
    for (let i = 0; i < 10; i++) expect((await deliver(url, target, PUSH, bad)).status).toBe(401);
  });
  await Promise.all(flood);
  // Each answer about the one known Secret counts for ten seconds; two more for a late pass of another test.
  expect((await reads()) - before).toBeLessThanOrEqual(3 + Math.ceil((performance.now() - start) / 10_000));
  expect((await operator.k8s.get(operator.source('flood')))?.status.lastWebhookAt).toBeUndefined();

  // Deliveries that are believed are many acts neither: one write at once, one per three seconds after that, and the last one counts.
  const from = bookmark(operator.info);
  const began = performance.now();
  await repository.commit(version('flood', 'two'));
  await Promise.all(Array.from({ length: 100 }, () => deliver(url, key, PUSH, signed(PUSH))));
  const last = await repository.commit(version('flood', 'three'));
  expect((await deliver(url, key, PUSH, signed(PUSH))).status).toBe(202);
  const seconds = (performance.now() - began) / 1000;
  await waitServed('flood', 'three');
  expect((await operator.k8s.get(operator.source('flood')))?.status.revision).toContain(last);
  const asked = writesSince(operator.info, from, (write) => write.name === 'flood').filter(
    ({ resource, user }) => resource === 'marketplacesources/status' && user.includes(operator.account.namespace),
  );
  // Besides those of the receiver there are those of two passes and their counts.
  expect(asked.length).toBeLessThanOrEqual(2 + Math.ceil(seconds / 3) + 6);
});

test('a suspended source and one that is deleted are left alone', async () => {
  const { operator } = harness;
  await applyToken(operator, 'still');
  const { source } = await newMarket(operator, 'still', version('still', 'one'), hook('still'));
  await operator.k8s.patch(source, { spec: { suspend: true } });
  const url = await receiverOf(operator);
  const send = () => deliver(url, `${operator.namespace}/still`, PUSH, signed(PUSH));
  await eventually(async () => expect((await send()).text).toBe('ignored: the source is suspended\n'), {
    timeoutMs: 30_000,
    what: 'the receiver to see the suspension',
  });
  await operator.k8s.delete(source);
  await eventually(async () => expect((await send()).status).toBe(401), {
    timeoutMs: 30_000,
    what: 'the receiver to see the deletion',
  });
  expect(await operator.k8s.get(source)).toBeUndefined();
});

test('a standby takes deliveries, and the leader acts', async () => {
  const { operator } = harness;
  await applyToken(operator, 'standby');
  const { repository, source } = await newMarket(operator, 'standby', version('standby', 'one'), hook('standby'));
  const { account, namespace, bucket } = operator;
  const args = ['--webhook-address', '127.0.0.1:0'];
  await using standby = await startOperator(inject('cluster'), { account, namespace, bucket, args, until: 'started' });
  await requestPass(operator.k8s, source);
  await repository.commit(version('standby', 'two'));
  const url = await receiverOf(standby);
  // Until its first list is there it asks the sender to come again.
  await eventually(
    async () => expect((await deliver(url, `${namespace}/standby`, PUSH, signed(PUSH))).status).toBe(202),
    {
      timeoutMs: 30_000,
      what: 'the standby to take the delivery',
    },
  );
  await waitServed('standby', 'two');
  expect((await fetch(`${await standby.address()}/readyz`)).status).toBe(200);
  expect(standby.logs().map(({ msg }) => msg)).not.toContain('working');
});

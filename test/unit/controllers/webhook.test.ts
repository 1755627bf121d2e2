import { describe, expect, test } from 'vitest';
import type { MarketplaceSource } from '../../../src/api/marketplacesource.ts';
import { onSourceChange } from '../../../src/controllers/changes.ts';
import { webhookProblem, withWebhook } from '../../../src/controllers/marketplacesource/webhook.ts';
import type { KubeApi, KubeObject } from '../../../src/kube/types.ts';

const never = new AbortController().signal;
const source = (webhook?: { secretRef: { name: string } }, status = {}): MarketplaceSource => ({
  metadata: { name: 'skills', namespace: 'team', uid: 'u', generation: 1 },
  spec: { type: 'git', git: { url: 'https://h/x.git' }, ...(webhook ? { webhook } : {}) },
  status,
});
const withSecret = (secret: KubeObject | undefined | Error, webhooks = true) => ({
  webhooks,
  api: {
    get: async () => {
      if (secret instanceof Error) throw secret;
      return secret;
    },
  } as unknown as KubeApi,
});
const hook = { secretRef: { name: 'hook' } };
const token = (text: string) => ({ metadata: { name: 'hook', namespace: 'team' }, data: { token: btoa(text) } });

describe('webhookProblem', () => {
  test.each<[string, string | null | undefined, MarketplaceSource, ReturnType<typeof withSecret>]>([
    ['no webhook', null, source(), withSecret(undefined)],
    ['a good Secret', null, source(hook), withSecret(token('hook-token-4711x'))],
    ['no Secret', 'SecretNotFound', source(hook), withSecret(undefined)],
    ['a short token', 'SecretInvalid', source(hook), withSecret(token('hook-short'))],
    ['no receiver', 'WebhookDisabled', source(hook), withSecret(undefined, false)],
    ['no answer', undefined, source(hook), withSecret(new Error('down'))],
  ])('%s: %s', async (_title, reason, object, deps) => {
    const problem = await webhookProblem(object, deps, never);
    expect(problem ? problem.reason : problem).toBe(reason);
  });
  test('says what to do', async () => {
    expect((await webhookProblem(source(hook), withSecret(undefined), never))?.message).toMatchInlineSnapshot(
      `"Secret "hook" with the webhook token not found, so deliveries are refused; kubectl -n team create secret generic hook --from-literal=token="$(openssl rand -hex 32)" makes one"`,
    );
    expect((await webhookProblem(source(hook), withSecret(undefined, false), never))?.message).toMatchInlineSnapshot(
      `"this installation receives no webhooks, so the source is looked at by spec.interval alone; set webhook.enabled of the chart (--webhook-address), or remove spec.webhook"`,
    );
  });
});

test('withWebhook puts its entry in front, keeps it while nothing is known, and takes it away', () => {
  const [content, old, now] = ['plugins/x', 'spec.webhook', 'spec.webhook'].map((path, at) => ({
    path,
    reason: `R${at}`,
    message: 'm',
  }));
  if (!content || !old || !now) throw new Error('unreachable');
  expect(withWebhook([content], now)).toEqual([now, content]);
  expect(withWebhook([old, content], now, [old, content])).toEqual([now, content]);
  expect(withWebhook([content], undefined, [old])).toEqual([old, content]);
  expect(withWebhook([old, content], null, [old])).toEqual([content]);
});

test('a delivery puts the source before the background work; the same status again does not', () => {
  const added: string[] = [];
  const queue = (name: string) => ({
    add: (key: string, options?: { priority?: boolean }) => added.push(`${name} ${key} ${options?.priority ?? false}`),
  });
  const queues = { source: queue('source'), counts: queue('counts'), skill: queue('skill') };
  const [before, after] = ['2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.001Z'].map((lastWebhookAt) =>
    source(hook, { lastWebhookAt }),
  ) as [MarketplaceSource, MarketplaceSource];
  const change = { type: 'updated', key: 'team/skills', initial: false } as const;
  onSourceChange({ ...change, object: after, old: before }, queues);
  onSourceChange({ ...change, object: after, old: after }, queues);
  expect(added).toEqual(['source team/skills true', 'counts team/skills false']);
});

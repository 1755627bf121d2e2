import { expect, test } from 'vitest';
import { retry } from '../../src/base/errors.ts';
import { createLogger } from '../../src/base/log.ts';
import { createMetrics } from '../../src/base/metrics.ts';
import { holdSecret } from '../../src/base/redact.ts';
import { measured, tracing } from '../../src/telemetry.ts';
import { startOtlpReceiver } from '../support/otlp.ts';
import { parseSamples } from '../support/samples.ts';
import { FakeClock } from './kube/fake-clock.ts';

function setup(settings: { endpoint: string; headers?: string; sampleRatio?: number } | undefined) {
  const clock = new FakeClock();
  const metrics = createMetrics();
  const lines: Record<string, unknown>[] = [];
  const { logger } = createLogger('info', { write: (line) => lines.push(JSON.parse(line)) });
  const config = {
    operatorNamespace: 'skill-operator-system',
    ...(settings ? { tracing: { sampleRatio: 1, ...settings } } : {}),
  };
  const { tracer, close } = tracing(config, { version: '1.2.3', identity: 'pod-1', metrics, clock, logger });
  const spans = async (result: string) =>
    parseSamples(await metrics.render()).value('skill_operator_spans_total', { result });
  return { clock, tracer, close, lines, logger, spans, observe: measured(metrics, clock, tracer) };
}

test('a pass is one trace, and what it calls are parts of it', async () => {
  await using receiver = await startOtlpReceiver();
  const { clock, tracer, close, observe, lines, logger, spans } = setup({
    endpoint: `${receiver.endpoint}/`,
    headers: 'api-key=canary-of-the-collector,Authorization=Basic%20YTpi==',
  });
  clock.freeze(1_000);
  await tracer.root('reconcile skill', { controller: 'skill', key: 'team/pdf' }, async () => {
    logger.info('inside');
    tracer.record('kube patch', { resource: 'skills', code: 200 }, 0.25);
    await observe({ system: 'store', name: 'put' }, async () => clock.freeze(500));
    const call = observe({ system: 'git', name: 'fetch' }, () => Promise.reject(retry('GitTimeout', 'slow')));
    await expect(call).rejects.toThrow('slow');
  });
  await observe({ system: 'store', name: 'list' }, async () => undefined);
  await close();
  const [root] = receiver.spans.filter(({ parentSpanId }) => parentSpanId === undefined);
  expect(root).toMatchObject({
    name: 'reconcile skill',
    startTimeUnixNano: '1000000000',
    endTimeUnixNano: '1500000000',
    status: { code: 0 },
    attributes: [
      { key: 'controller', value: { stringValue: 'skill' } },
      { key: 'key', value: { stringValue: 'team/pdf' } },
    ],
  });
  const parts = receiver.spans.filter(({ parentSpanId }) => parentSpanId === root?.spanId);
  expect(parts.map(({ name, status }) => [name, status])).toEqual([
    ['kube patch', { code: 0 }],
    ['store put', { code: 0 }],
    ['git fetch', { code: 2, message: 'GitTimeout' }],
  ]);
  expect(parts[0]).toMatchObject({ startTimeUnixNano: '750000000', endTimeUnixNano: '1000000000' });
  expect(new Set(receiver.spans.map(({ traceId }) => traceId)).size).toBe(1);
  expect(lines).toMatchObject([{ msg: 'inside', traceID: root?.traceId }]);
  expect(receiver.headers[0]).toMatchObject({
    url: '/v1/traces',
    'api-key': 'canary-of-the-collector',
    authorization: 'Basic YTpi==',
  });
  expect(JSON.stringify(receiver.bodies)).toContain('"service.instance.id"'.replaceAll('"', '\\"'));
  expect(await spans('sent')).toBe(4);
});

test('a pass that fails says why in one word, and a secret never leaves', async () => {
  await using receiver = await startOtlpReceiver();
  holdSecret('canary-value-of-a-span');
  const { tracer, close } = setup({ endpoint: receiver.endpoint });
  const failing = tracer.root('reconcile source', { key: 'team/canary-value-of-a-span' }, () =>
    Promise.reject(retry('GitUnreachable', 'no route to canary-value-of-a-span')),
  );
  await expect(failing).rejects.toThrow('no route');
  await close();
  expect(receiver.spans.map(({ status }) => status)).toEqual([{ code: 2, message: 'GitUnreachable' }]);
  expect(receiver.bodies.join()).not.toContain('canary');
});

test('a collector that refuses costs one line a minute and nothing else', async () => {
  await using receiver = await startOtlpReceiver();
  receiver.status = 503;
  const { clock, tracer, close, lines, spans } = setup({ endpoint: receiver.endpoint });
  for (let i = 0; i < 2; i++) {
    await tracer.root('reconcile skill', {}, async () => undefined);
    await close();
  }
  expect(lines.map(({ msg }) => msg)).toEqual([
    'traces could not be sent: it answers 503; check tracing.endpoint and the collector; nothing else depends on it',
  ]);
  expect(await spans('dropped')).toBe(2);
  for (let i = 0; i < 6_000; i++) await tracer.root('reconcile skill', {}, async () => undefined);
  receiver.status = 200;
  await close();
  expect((await spans('dropped')) + (await spans('sent'))).toBeGreaterThan(2);
  expect(receiver.bodies.length).toBeGreaterThan(2);
  expect(clock.timers).toBeLessThanOrEqual(1);
});

test.each([
  ['without a collector', undefined],
  ['with a share of 0', { endpoint: 'http://127.0.0.1:1', sampleRatio: 0 }],
])('%s nothing is traced, held or logged', async (_, settings) => {
  const { clock, tracer, close, lines, logger } = setup(settings);
  await tracer.root('reconcile skill', {}, async () => logger.info('inside'));
  tracer.record('kube get', {}, 1);
  await close();
  expect(clock.timers).toBe(0);
  expect(lines).toEqual([expect.not.objectContaining({ traceID: expect.anything() })]);
});

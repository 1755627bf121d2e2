import { expect, inject, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { applySource, marketplace, newRepository, waitReady } from '../../support/market.ts';
import { startOperator } from '../../support/operator.ts';
import { startOtlpReceiver } from '../../support/otlp.ts';

const info = inject('cluster');

test('passes arrive at a collector with their calls to Git, S3 and the API, and without any content', async () => {
  await using receiver = await startOtlpReceiver();
  await using operator = await startOperator(info, { args: ['--otlp-endpoint', receiver.endpoint] });
  const repository = await newRepository(operator);
  await repository.commit(marketplace({ docs: { pdf: 'canary of the content: ---', odt: {} } }));
  const source = await applySource(operator, 'team', repository);
  await waitReady(operator.k8s, source);
  await waitReady(operator.k8s, operator.skill('team.docs.odt'));
  await operator.stop();
  const names = () => receiver.spans.map(({ name }) => name);
  await eventually(() => names().includes('reconcile skill'), { what: 'the trace of a Skill' });
  for (const name of ['reconcile source', 'git ls-remote', 'git fetch', 'store put', 'kube patch']) {
    expect(names()).toContain(name);
  }
  const [fetch] = receiver.spans.filter(({ name }) => name === 'git fetch');
  const parent = receiver.spans.find(({ spanId }) => spanId === fetch?.parentSpanId);
  expect(parent?.name).toBe('reconcile source');
  const text = receiver.bodies.join('\n');
  for (const secret of ['canary of the content', info.s3.secretKey, repository.name])
    expect(text).not.toContain(secret);
});

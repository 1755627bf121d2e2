import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { applySource, marketplace, newRepository, requestPass, waitReady } from '../../support/market.ts';
import { type Operator, startOperator } from '../../support/operator.ts';

let operator: Operator;
beforeAll(async () => {
  operator = await startOperator(inject('cluster'));
});
afterAll(() => operator?.[Symbol.asyncDispose]());

test('smoke', async () => {
  const repository = await newRepository(operator);
  await repository.commit(marketplace({ docs: { pdf: {} } }));
  const source = await applySource(operator, 'team', repository);
  console.log(JSON.stringify(await waitReady(operator.k8s, source), null, 1));
  console.log(JSON.stringify(await waitReady(operator.k8s, operator.skill('team.docs.pdf')), null, 1));
  await requestPass(operator.k8s, source);
  const m = await operator.metrics();
  console.log(m.value('rest_client_requests_total'), m.value('skill_operator_store_requests_total'), operator.logs().length);
  await operator.kill();
  await operator.start();
  expect(1).toBe(1);
});

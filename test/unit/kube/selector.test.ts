import { expect, test } from 'vitest';
import { selectorLabels } from '../../../src/kube/selector.ts';

test.each<[string, string[] | undefined]>([
  ['shard=a', ['shard']],
  ['shard==a', ['shard']],
  ['shard!=a', ['shard']],
  ['shard', ['shard']],
  ['!shard', ['shard']],
  ['shard in (a, b),!example.com/old', ['shard', 'example.com/old']],
  ['shard notin (a)', ['shard']],
  ['a=1,a!=2,b', ['a', 'b']],
  ['shard=', ['shard']],
  ['', undefined],
  ['shard in a', undefined],
  ['shard in (a,b', undefined],
  ['a=b=c', undefined],
  ['-a=b', undefined],
  ['a,,b', undefined],
  ['a b', undefined],
  ['shard in (a)&limit=1', undefined],
])('%s asks about %j', (selector, labels) => {
  expect(selectorLabels(selector)).toEqual(labels);
});

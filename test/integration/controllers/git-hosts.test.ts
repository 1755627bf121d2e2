import { readFileSync } from 'node:fs';
import { expect, inject, test } from 'vitest';
import { API_VERSION } from '../../../src/api/labels.ts';
import { eventually } from '../../support/eventually.ts';
import { condition } from '../../support/k8s.ts';
import {
  applySecret,
  applySource,
  marketplace,
  newRepository,
  requestPass,
  waitNotReady,
  waitReady,
} from '../../support/market.ts';
import { useOperator } from './harness.ts';

const { git } = inject('cluster');
const { origin } = new URL(git.httpUrl);
const harness = useOperator();

/** Requests over http that ended in this part of a path. */
const requests = (part: string): number =>
  readFileSync(git.accessLog, 'utf8')
    .split('\n')
    .filter((line) => line.includes(part)).length;

test('a host that asks to slow down is left alone by everybody who comes with the same Secret', async () => {
  const { operator } = harness;
  const repository = await newRepository(operator);
  await applySecret(operator, 'limited', { username: 'tester', password: 'limited-pass-1' });
  const limited = (name: string) =>
    applySource(operator, name, repository, {
      git: { url: `${origin}/status/429/${operator.namespace}-${name}.git` },
      secretRef: { name: 'limited' },
    });
  const first = await limited('first');
  await waitNotReady(operator.k8s, first, 'GitRateLimited');
  const asked = requests(`${operator.namespace}-first.git`);
  const second = await limited('second');
  const object = await waitNotReady(operator.k8s, second, 'GitRateLimited');
  expect(condition(object, 'Ready')?.message).toMatch(/asks to slow down: the operator waits a minute/);
  await requestPass(operator.k8s, first);
  expect(requests(`${operator.namespace}-second.git`)).toBe(0);
  expect(requests(`${operator.namespace}-first.git`)).toBe(asked);
});

test('a host that never answers takes one worker, however many sources and Skills point at it', async () => {
  const { operator } = harness;
  const { k8s, namespace } = operator;
  const dead = (name: string) => ({ url: `${origin}/silent/${namespace}-${name}.git` });
  const repository = await newRepository(operator);
  await repository.commit(marketplace({ docs: { pdf: {} } }));
  const names = Array.from({ length: 20 }, (_, n) => `dead-${n}`);
  await Promise.all(
    names.flatMap((name) => [
      applySource(operator, name, repository, { git: dead(name), timeout: '5m' }),
      k8s.apply({
        apiVersion: API_VERSION,
        kind: 'Skill',
        metadata: { name, namespace },
        spec: {
          source: { git: { ...dead(name), interval: '10m', timeout: '5m' } },
          plugin: 'p',
          path: `plugins/p/skills/${name}`,
        },
      }),
    ]),
  );
  await eventually(() => requests(`silent/${namespace}-dead`) > 0, { what: 'a visit to the dead host' });
  // Another port is another host.
  await applySecret(operator, 'authority', { 'ca.crt': git.caCert });
  const alive = await applySource(operator, 'alive', repository, {
    git: { url: `${git.httpsUrl}/${repository.name}.git` },
    secretRef: { name: 'authority' },
  });
  await waitReady(k8s, alive);
  await waitReady(k8s, operator.skill('alive.docs.pdf'));
  expect(requests(`silent/${namespace}-dead`)).toBe(1);
  // Somebody who gives up on the dead host is heard at once, too.
  await k8s.patch(operator.source('dead-7'), { spec: { git: { url: `${git.httpsUrl}/${repository.name}.git` } } });
  await k8s.patch(operator.source('dead-7'), { spec: { secretRef: { name: 'authority' } } });
  await waitReady(k8s, operator.source('dead-7'));
});

import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { API_VERSION } from '../../../src/api/labels.ts';
import { type ByoStage, openByoStage } from '../../support/byo/stage.ts';
import { condition, type K8sObject } from '../../support/k8s.ts';
import { isReady } from '../../support/market.ts';
import { logsOf } from '../../support/pods.ts';
import { listObjects, readObject } from '../../support/s3.ts';

const { node, ...info } = inject('cluster');

describe.skipIf(!node)('the secret values of builds and engines', () => {
  if (!node) return;
  let stage: ByoStage;
  beforeAll(async () => {
    stage = await openByoStage(info, node, { operator: { env: { SKILL_OPERATOR_LOG_LEVEL: 'trace' } } });
  });
  afterAll(() => stage?.[Symbol.asyncDispose]());

  const all = async (apiVersion: string, kind: string, namespace: string): Promise<K8sObject[]> =>
    await stage.k8s.list({ apiVersion, kind, namespace });

  async function podLogs(pods: K8sObject[]): Promise<string> {
    const logs = pods.flatMap(({ metadata }) =>
      ['fetch', 'build', 'push'].map((step) =>
        logsOf(stage.k8s, { name: metadata.name, namespace: stage.builds }, step).catch(() => ''),
      ),
    );
    return (await Promise.all(logs)).join('\n');
  }

  async function bucket(): Promise<string> {
    const objects = await listObjects(info.s3, stage.operator.bucket);
    const bodies = await Promise.all(objects.map(({ key }) => readObject(info.s3, stage.operator.bucket, key)));
    return `${objects.map(({ key }) => key).join('\n')}${Buffer.concat(bodies).toString('latin1')}`;
  }

  const forms = (value: string) => [
    value,
    encodeURIComponent(value),
    JSON.stringify(value).slice(1, -1),
    Buffer.from(value)
      .toString('base64')
      .replace(/.{0,2}=*$/, ''),
  ];

  function expectNowhere(places: Record<string, string>): void {
    const secrets = new Map([...stage.secrets, ['a presigned URL', 'X-Amz-Signature']]);
    for (const [name, value] of secrets) {
      for (const [place, text] of Object.entries(places)) {
        const found = forms(value).filter((form) => text.includes(form));
        expect(found, `${name} in ${place}`).toEqual([]);
      }
    }
  }

  test('appear in no log, event, status, Job, Pod, metric or stored object', async () => {
    const { operator, builds } = stage;
    const dockerfile = stage.from('RUN echo 1 > /number');
    await stage.market('quiet', {
      calm: stage.skill('e2b', 'calm', dockerfile),
      still: stage.skill('cubesandbox', 'still', dockerfile),
      fails: stage.skill('e2b', 'fails', stage.from('RUN env; cat /proc/1/environ; exit 4')),
    });
    await stage.until('quiet.p.calm', 'Ready', isReady);
    await stage.until('quiet.p.still', 'Ready', isReady);
    await stage.until('quiet.p.fails', 'Failed', ({ status }) => status?.candidate?.phase === 'Failed');
    const pods = await all('v1', 'Pod', builds);
    const jobs = await all('batch/v1', 'Job', builds);
    expect(pods.length).toBeGreaterThanOrEqual(3);
    // They were all in use.
    expect(stage.e2b.seen.some(({ headers }) => headers['x-api-key'])).toBe(true);
    expect(stage.cube.seen.some(({ headers }) => headers.authorization)).toBe(true);
    expectNowhere({
      log: JSON.stringify(operator.logs()),
      skills: JSON.stringify(await all(API_VERSION, 'Skill', operator.namespace)),
      sources: JSON.stringify(await all(API_VERSION, 'MarketplaceSource', operator.namespace)),
      events: JSON.stringify(await all('events.k8s.io/v1', 'Event', operator.namespace)),
      'events of builds': JSON.stringify(await all('v1', 'Event', builds)),
      state: JSON.stringify(await all('v1', 'ConfigMap', operator.account.namespace)),
      jobs: JSON.stringify(jobs),
      pods: JSON.stringify(pods),
      'logs of builds': await podLogs(pods),
      metrics: await fetch(`${await operator.address()}/metrics`).then((response) => response.text()),
      bucket: await bucket(),
    });
  });

  test('are masked where an author prints them: in the log tail, message and events', async () => {
    const { operator } = stage;
    const password = stage.secrets.get('registry password') ?? '';
    await stage.market('loud', {
      shouts: stage.skill('e2b', 'shouts', stage.from(`RUN echo "it is ${password}"; exit 5`)),
    });
    const failed = await stage.until(
      'loud.p.shouts',
      'Failed',
      (object) => condition(object, 'Ready')?.reason === 'BuildCommandFailed',
    );
    expect(failed.status.candidate.logTail).toContain('it is ');
    expectNowhere({
      log: JSON.stringify(operator.logs()),
      skill: JSON.stringify(failed.status),
      events: JSON.stringify(await all('events.k8s.io/v1', 'Event', operator.namespace)),
    });
  });
});

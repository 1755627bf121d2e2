import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, inject, onTestFinished, test } from 'vitest';
import { API_VERSION } from '../../../src/api/labels.ts';
import type { TestRepository } from '../../support/git.ts';
import { applySecret, applySource, marketplace, newRepository, waitReady } from '../../support/market.ts';
import { startOperator } from '../../support/operator.ts';
import { ForwardProxy } from '../../support/proxy.ts';

const { git } = inject('cluster');
const password = 'canary-proxy-password';

function authorityFile(): string {
  const dir = mkdtempSync(join(tmpdir(), 'authority-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  writeFileSync(join(dir, 'ca.crt'), git.caCert);
  return join(dir, 'ca.crt');
}

const secureUrl = ({ name }: TestRepository) => `${git.httpsUrl}/${name}.git`;

test('the proxy and the authorities of the operator count for Git; the proxy of a Secret goes before', async () => {
  await using shared = await ForwardProxy.start();
  await using own = await ForwardProxy.start({ username: 'robot', password });
  const env = { HTTPS_PROXY: shared.address, NODE_EXTRA_CA_CERTS: authorityFile() };
  await using operator = await startOperator(inject('cluster'), { env });
  const repository = await newRepository(operator);
  await repository.commit(marketplace({ docs: { pdf: {}, odt: {} } }));
  const source = await applySource(operator, 'shared', repository, {
    git: { url: secureUrl(repository) },
    include: ['docs/pdf'],
  });
  await waitReady(operator.k8s, source);
  const tunnel = `CONNECT ${new URL(git.httpsUrl).host}`;
  expect(new Set(shared.requests)).toEqual(new Set([tunnel]));
  const before = shared.requests.length;

  await applySecret(operator, 'proxy', { address: own.address, username: 'robot', password });
  await operator.k8s.apply({
    apiVersion: API_VERSION,
    kind: 'Skill',
    metadata: { name: 'odt', namespace: operator.namespace },
    spec: {
      source: { git: { url: secureUrl(repository), interval: '10m', proxySecretRef: { name: 'proxy' } } },
      plugin: 'docs',
      path: 'plugins/docs/skills/odt',
    },
  });
  await waitReady(operator.k8s, operator.skill('odt'));
  expect(own.requests).toContain(tunnel);
  expect(shared.requests).toHaveLength(before);
  expect(JSON.stringify(operator.logs())).not.toContain(password);
});

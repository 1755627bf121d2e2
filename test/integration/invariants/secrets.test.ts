import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { API_VERSION } from '../../../src/api/labels.ts';
import { eventually } from '../../support/eventually.ts';
import { condition, type Ref } from '../../support/k8s.ts';
import { applySecret, applySource, marketplace, newRepository, skillMd, waitReady } from '../../support/market.ts';
import { type Operator, startOperator } from '../../support/operator.ts';
import { listObjects, readObject } from '../../support/s3.ts';
import { listSkills } from './support.ts';

const info = inject('cluster');
const { git } = info;
let operator: Operator;
beforeAll(async () => {
  operator = await startOperator(info, { env: { SKILL_OPERATOR_LOG_LEVEL: 'trace' } });
});
afterAll(() => operator?.[Symbol.asyncDispose]());

const cmdline = (pid: number | string): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
};

/** The directory that the operator was told to keep its mirrors in. */
function mirrorDir(): string {
  const [, dir = ''] = /--mirror-dir (\S+)/.exec(cmdline(operator.pid)) ?? [];
  expect(dir).not.toBe('');
  return dir;
}

const filesBelow = (dir: string): string[] =>
  readdirSync(dir, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));

const canary = (name: string) => `canary-${name}-${randomBytes(9).toString('hex')}`;

test('skill files are never on disk, in whatever form but Git objects (I6)', async () => {
  const sentinel = canary('file');
  const repository = await newRepository(operator);
  const body = skillMd({ name: 'pdf', body: sentinel });
  await repository.commit(
    marketplace({
      docs: {
        pdf: { 'SKILL.md': body, 'scripts/run.sh': { content: `#!/bin/sh\ntouch /tmp/${sentinel}\n`, mode: '100755' } },
      },
    }),
  );
  await applySource(operator, 'files', repository);
  await waitReady(operator.k8s, operator.skill('files.docs.pdf'));
  const files = filesBelow(mirrorDir());
  expect(files.length).toBeGreaterThan(0);
  expect(files.filter((file) => /SKILL\.md|run\.sh|\/index$/.test(file))).toEqual([]);
  // A pack is compressed: what is found in clear is a file of its own.
  expect(files.filter((file) => readFileSync(file).includes(sentinel))).toEqual([]);
  expect(
    files.filter((file) => file.endsWith('/config') && !readFileSync(file, 'utf8').includes('bare = true')),
  ).toEqual([]);
  expect(readdirSync('/tmp')).not.toContain(sentinel);
});

/** Every value that nobody but the operator and its peer may see. */
const CANARIES = new Map<string, string>();
const keep = (name: string, value = canary(name)): string => {
  CANARIES.set(name, value);
  return value;
};

const multiline = (name: string) =>
  `-----BEGIN OPENSSH PRIVATE KEY-----\n${keep(`${name}-1`)}\n${keep(`${name}-2`)}\n-----END OPENSSH PRIVATE KEY-----\n`;

async function sourceWith(
  name: string,
  url: string,
  values: Record<string, string>,
  spec: Record<string, unknown> = {},
): Promise<Ref> {
  const { namespace } = operator;
  await applySecret(operator, name, values);
  await operator.k8s.apply({
    apiVersion: API_VERSION,
    kind: 'MarketplaceSource',
    metadata: { name, namespace },
    spec: { type: 'git', git: { url }, secretRef: { name }, interval: '10m', timeout: '2s', ...spec },
  });
  return operator.source(name);
}

test('secret values appear nowhere: log, events, objects, metrics, bucket, disk, command lines (I9)', async () => {
  const origin = new URL(git.httpUrl).origin;
  const repository = await newRepository(operator);
  await repository.commit(marketplace({ docs: { secretive: {} } }));
  const privateUrl = `${git.privateUrl}/${repository.name}.git`;
  for (const [name, value] of [
    ['s3 secret key', info.s3.secretKey],
    ['git password', git.password],
    ['git bearer token', git.bearerToken],
  ] as const) {
    keep(name, value);
  }
  const basic = () => ({ username: 'bot', password: keep(`password-${CANARIES.size}`, `${canary('pw"\\')} ü/+?`) });
  await applySecret(operator, 'proxy', { address: 'http://127.0.0.1:9', username: 'bot', password: keep('proxy') });
  const refs = await Promise.all([
    sourceWith('good', privateUrl, { username: git.username, password: git.password }),
    sourceWith('good-bearer', privateUrl, { bearerToken: git.bearerToken }, { include: ['x/*'] }),
    sourceWith('wrong', privateUrl, basic()),
    sourceWith('wrong-bearer', privateUrl, { bearerToken: keep('bearer') }),
    sourceWith('silent', `${origin}/silent/x.git`, basic()),
    sourceWith('redirected', `${origin}/redirect/${repository.name}.git`, basic()),
    sourceWith('limited', `${origin}/status/429/x.git`, basic()),
    sourceWith('broken', `${origin}/status/500/x.git`, { bearerToken: keep('bearer-500') }),
    sourceWith('missing', `${git.privateUrl}/none.git`, { username: git.username, password: git.password }),
    sourceWith('untrusted', `${git.httpsUrl}/${repository.name}.git`, { ...basic(), 'ca.crt': 'none' }),
    sourceWith('refused', 'http://127.0.0.1:9/x.git', basic()),
    sourceWith('halved', privateUrl, { password: keep('password-alone') }),
    sourceWith('spaced', privateUrl, { bearerToken: `${keep('line-1')}\n${keep('line-2')}` }),
    sourceWith('app', `${git.httpsUrl}/x.git`, {
      ...{ githubAppID: '1', githubAppInstallationID: '2', githubAppPrivateKey: multiline('app') },
    }),
    sourceWith('proxied', privateUrl, basic(), { proxySecretRef: { name: 'proxy' } }),
    sourceWith('no-key', `${git.sshUrl}/x.git`, { identity: multiline('identity'), known_hosts: git.sshKnownHosts }),
    sourceWith('unknown-keys', privateUrl, { token: keep('token'), apiKey: keep('api-key') }),
  ]);
  const lines = new Set<string>();
  await eventually(
    async () => {
      for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
        const line = cmdline(pid);
        if (line.includes('git')) lines.add(line);
      }
      const objects = await Promise.all(refs.map((ref) => operator.k8s.get(ref)));
      return objects.every((object) => object && condition(object, 'Ready'));
    },
    { timeoutMs: 30_000, what: 'a verdict on every source', intervalMs: 5 },
  );
  await waitReady(operator.k8s, operator.skill('good.docs.secretive'));
  expect([...lines].some((line) => line.includes('ls-remote'))).toBe(true);
  // URLs with credentials do not even become objects; the refusal of the API server is the person's own.
  await expect(sourceWith('userinfo', `https://bot:${canary('userinfo')}@127.0.0.1/x.git`, {})).rejects.toThrow(
    'must not carry',
  );

  const { namespace, k8s } = operator;
  const events = await k8s.list({ apiVersion: 'events.k8s.io/v1', kind: 'Event', namespace });
  const sources = await k8s.list({ apiVersion: API_VERSION, kind: 'MarketplaceSource', namespace });
  expect(events.length).toBeGreaterThan(10);
  const metrics = await fetch(`${await operator.address()}/metrics`).then((response) => response.text());
  const objects = await listObjects(info.s3, operator.bucket);
  const bodies = await Promise.all(objects.map(({ key }) => readObject(info.s3, operator.bucket, key)));
  const disk = filesBelow(mirrorDir());
  const places: Record<string, string> = {
    log: JSON.stringify(operator.logs()),
    events: JSON.stringify(events),
    sources: JSON.stringify(sources),
    skills: JSON.stringify(await listSkills(operator)),
    metrics,
    bucket: `${objects.map(({ key }) => key).join('\n')}${Buffer.concat(bodies).toString('latin1')}`,
    disk: `${disk.join('\n')}${disk.map((file) => readFileSync(file, 'latin1')).join('\n')}`,
    commands: [...lines].join('\n'),
  };
  expect(CANARIES.size).toBeGreaterThan(18);
  for (const [name, value] of CANARIES) {
    const forms = [
      value,
      encodeURIComponent(value),
      JSON.stringify(value).slice(1, -1),
      Buffer.from(value).toString('base64').slice(0, -3),
    ];
    for (const [place, text] of Object.entries(places)) {
      expect(
        forms.filter((form) => text.includes(form)),
        `${name} in ${place}`,
      ).toEqual([]);
    }
  }
});

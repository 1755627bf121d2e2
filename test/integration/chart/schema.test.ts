import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CHART, HELM_COMPILE_MS, Helm, MINIMAL, type Values } from '../../support/helm.ts';
import { BUILDS, VARIANTS } from './variants.ts';

const helm = new Helm();
beforeAll(() => helm.prepare(), HELM_COMPILE_MS);
afterAll(() => helm[Symbol.asyncDispose]());

/** What Helm says of values that it refuses: its lines about values, without the frame around them. */
async function refusal(values: Values): Promise<string> {
  const { code, stderr } = await helm.run(['template', 'skill-operator', CHART], { values });
  expect(code).toBe(1);
  const lines = stderr.split('\n').filter((line) => line.startsWith('- ') || line.includes('execution error'));
  return lines.map((line) => line.replace(/^.*execution error at \(.*?\): /, '')).join('\n');
}

const store = (over: object): Values => ({
  ...MINIMAL,
  config: { store: { endpoint: 'https://a.example.com', bucket: 'b', ...over } },
});
const build = (over: object): Values => ({ ...MINIMAL, config: { ...BUILDS, build: { ...BUILDS.build, ...over } } });

describe('helm lint', () => {
  test.each(Object.entries(VARIANTS))('finds nothing in the variant %s', async (_name, values) => {
    const { code, stdout, stderr } = await helm.run(['lint', '--strict', CHART], { values });
    expect(stdout + stderr).not.toMatch(/\[(WARNING|ERROR)\]/);
    expect(code).toBe(0);
  });
});

describe('values are refused', () => {
  test.each<[what: string, values: Values, names: RegExp]>([
    ['a key that does not exist', { ...MINIMAL, replica: 2 }, /replica/],
    ['a setting that does not exist', { ...MINIMAL, config: { logLevl: 'debug' } }, /config.*logLevl/s],
    ['an S3 key among the values', store({ accessKey: 'AKIA' }), /config.*store.*accessKey/s],
    ['what the chart decides', { ...MINIMAL, config: { mirrorDir: '/data' } }, /mirrorDir/],
    ['a store that is no URL', store({ endpoint: 5 }), /endpoint/],
    ['an unknown log level', { ...MINIMAL, config: { logLevel: 'loud' } }, /logLevel/],
    ['too many workers', { ...MINIMAL, config: { skillWorkers: 1000 } }, /skillWorkers/],
    ['a builder image without a digest', build({ builderImage: 'kaniko:latest' }), /builderImage/],
    ['builds without a registry', build({ registry: {} }), /registry/],
    ['a runtime that does not exist', { ...MINIMAL, config: { tier1: { 'e2b::ruby': 'x' } } }, /tier1|ruby/],
    ['a memory limit that is not whole', { ...MINIMAL, resources: { limits: { memory: '1.5G' } } }, /memory/],
    ['a digest that is none', { ...MINIMAL, image: { digest: 'latest' } }, /digest/],
    ['a proxy with a password', { ...MINIMAL, proxy: { http: 'http://me:secret@proxy:3128' } }, /http/],
    ['replicas that are a word', { ...MINIMAL, replicas: 'two' }, /replicas/],
    ['a PodDisruptionBudget that blocks every drain', { ...MINIMAL, pdb: { maxUnavailable: 0 } }, /maxUnavailable/],
    ['an extra object that is none', { ...MINIMAL, extraObjects: [{ a: 'b' }] }, /extraObjects/],
  ])('for %s', async (_what, values, names) => {
    expect(await refusal(values)).toMatch(names);
  });

  test('without a store, with the way out', async () => {
    expect(await refusal({})).toMatchInlineSnapshot(
      `"the operator keeps packages in S3: set config.store.endpoint and config.store.bucket (--set config.store.endpoint=https://minio.example.com,config.store.bucket=skills), or bundledS3.enabled=true to try it out"`,
    );
  });
  test('without the Secret of the store, with the command that makes it', async () => {
    expect(await refusal({ config: MINIMAL.config })).toMatchInlineSnapshot(
      `"store.existingSecret must name the Secret with the S3 key: kubectl -n default create secret generic skill-store --from-literal=accessKey=… --from-literal=secretKey=… and --set store.existingSecret=skill-store"`,
    );
  });
  test('for an Ingress without a host, and for one without the receiver behind it', async () => {
    expect(await refusal({ ...MINIMAL, webhook: { enabled: true, ingress: { enabled: true } } })).toContain(
      'webhook.ingress.host must be the name under which the Git host reaches the cluster',
    );
    expect(await refusal({ ...MINIMAL, webhook: { ingress: { enabled: true, host: 'a.example.com' } } })).toContain(
      'set webhook.enabled=true',
    );
  });
  test('for builds in the namespace of the operator', async () => {
    expect(await refusal(build({ namespace: 'default' }))).toMatchInlineSnapshot(
      `"config.build.namespace must not be the release namespace: builds run as root in their container and need Pod Security baseline; leave it out for a namespace of its own"`,
    );
  });
});

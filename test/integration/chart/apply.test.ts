import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { HELM_COMPILE_MS, Helm, one } from '../../support/helm.ts';
import { K8s, type K8sObject, refOf } from '../../support/k8s.ts';
import { VARIANTS } from './variants.ts';

/** What the chart renders, asked of the real API server. */
const helm = new Helm();
const k8s = new K8s(inject('cluster').kubeconfig);
let namespace: string;
let restricted: string;

beforeAll(async () => {
  await helm.prepare();
  namespace = await k8s.createNamespace('chart');
  restricted = await k8s.createNamespace('chart', { 'pod-security.kubernetes.io/enforce': 'restricted' });
  // Namespaces that the values of the variants name.
  for (const name of ['market', 'team', 'team-builds'])
    await k8s.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
}, HELM_COMPILE_MS);
afterAll(async () => {
  await k8s[Symbol.asyncDispose]();
  await helm[Symbol.asyncDispose]();
});

/** What the API server would store; unknown and doubled fields are errors. */
async function dryRun(object: K8sObject): Promise<K8sObject> {
  const query = 'fieldManager=helm&force=true&dryRun=All&fieldValidation=Strict';
  const { status, text } = await k8s.api.request('PATCH', `${await k8s.path(refOf(object))}?${query}`, {
    body: object,
    contentType: 'application/apply-patch+yaml',
  });
  if (status >= 300) throw new Error(`${object.kind} ${object.metadata.name}: ${status} ${text}`);
  return JSON.parse(text) as K8sObject;
}

// Kinds of the Prometheus operator and of the Gateway API are not served here.
const served = ({ apiVersion }: K8sObject): boolean =>
  !/^(monitoring\.coreos\.com|gateway\.networking\.k8s\.io)\//.test(apiVersion);

// No tool compares a hook with what became of it.
const isHook = ({ metadata }: K8sObject): boolean => metadata.annotations?.['helm.sh/hook'] !== undefined;

describe('the API server accepts every object', () => {
  test.each(Object.entries(VARIANTS))('of the variant %s, and rewrites nothing', async (_name, values) => {
    const objects = (await helm.render(values, { namespace })).filter(served);
    expect(objects.length).toBeGreaterThan(3);
    // A field that comes back otherwise than it was given would be drift for ever in the eyes of a GitOps tool.
    for (const object of objects) {
      const stored = await dryRun(object);
      if (!isHook(object)) expect(stored).toMatchObject(object);
    }
  });
  test('and refuses a field that does not exist', async () => {
    const object = one(await helm.render(VARIANTS.minimal, { namespace }), 'Service');
    await expect(dryRun({ ...object, spec: { ...object.spec, prots: [] } })).rejects.toThrow(/prots/);
  });
});

describe('Pod Security restricted', () => {
  /** Every pod that the objects lead to, in the restricted namespace. */
  const podsOf = (objects: K8sObject[]): K8sObject[] =>
    objects.flatMap((object) => {
      if (object.kind !== 'Deployment' && object.kind !== 'Pod') return [];
      const { metadata, spec } = object.kind === 'Pod' ? object : object.spec.template;
      const pod = { ...spec, serviceAccountName: 'default', priorityClassName: undefined, priority: undefined };
      return [
        {
          apiVersion: 'v1',
          kind: 'Pod',
          metadata: { name: object.metadata.name, namespace: restricted, labels: metadata.labels },
          spec: pod,
        },
      ];
    });
  const create = (pod: K8sObject) =>
    k8s.api.request('POST', `/api/v1/namespaces/${restricted}/pods?dryRun=All&fieldValidation=Strict`, { body: pod });

  test.each(Object.entries(VARIANTS))('takes every pod of the variant %s', async (_name, values) => {
    const pods = podsOf(await helm.render(values, { namespace }));
    expect(pods.length).toBeGreaterThanOrEqual(2);
    for (const pod of pods) {
      const { status, text } = await create(pod);
      expect(text).not.toContain('violates PodSecurity');
      expect(status).toBe(201);
    }
  });
  test('would not take one that runs as root', async () => {
    const [pod] = podsOf(
      await helm.render({ ...VARIANTS.minimal, podSecurityContext: { runAsNonRoot: false } }, { namespace }),
    );
    const { status, text } = await create(pod as K8sObject);
    expect(status).toBe(403);
    expect(text).toContain('violates PodSecurity');
  });
});

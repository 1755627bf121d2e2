import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { API_VERSION } from '../../../src/api/labels.ts';
import { K8s, type K8sObject, parseObjects } from '../../support/k8s.ts';
import { blocks, originals } from '../../support/markdown.ts';
import { installCrds } from '../../support/operator-account.ts';

/** Every Kubernetes object that a page shows; a block without a kind is another file. */
const shown = originals().flatMap(({ path, text }) =>
  blocks({ text }, 'yaml')
    .flatMap(parseObjects)
    .filter((object) => object.kind !== undefined)
    .map((object) => ({ path, object, name: `${object.kind} ${object.metadata.name}` })),
);

let k8s: K8s;
let namespace: string;
beforeAll(async () => {
  await installCrds(inject('cluster'));
  k8s = new K8s(inject('cluster').kubeconfig);
  namespace = await k8s.createNamespace('docs');
});
afterAll(() => k8s?.[Symbol.asyncDispose]());

const placed = (object: K8sObject): K8sObject => ({ ...object, metadata: { ...object.metadata, namespace } });

test.each(shown)('the API server takes $name of $path', async ({ object }) => {
  const [applied] = await k8s.apply(placed(object), { dryRun: true });
  // Server-side apply drops a field that the schema does not know without a word: what the page shows must all be there.
  if (object.apiVersion === API_VERSION) expect(applied?.spec).toEqual(object.spec);
});

test('the pages show sources of every kind that is supported, a Skill and a Secret', () => {
  const kinds = new Set(shown.map(({ object }) => object.spec?.type ?? object.kind));
  expect([...kinds].sort()).toEqual(['Secret', 'Skill', 'git', 'git-subdir', 'github']);
});

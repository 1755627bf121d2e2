import { expect, test } from 'vitest';
import manifest from '../../../package.json' with { type: 'json' };
import lock from '../../../package-lock.json' with { type: 'json' };
import { type Bom, billOf } from '../../../scripts/lib/sbom.ts';

const component = (name: string, version: string) => ({
  purl: `pkg:npm/${name.replace('@', '%40')}@${version}`,
  'bom-ref': `${name}@${version}`,
});

const LOCK = {
  packages: {
    '': { version: '1.0.0' },
    'node_modules/zod': { version: '4.0.0' },
    'node_modules/@kubernetes/client-node': { version: '2.0.0' },
    'node_modules/zod/node_modules/ms': { version: '2.1.0' },
    'node_modules/vitest': { version: '5.0.0', dev: true },
    'node_modules/@napi-rs/nice': { version: '1.0.0', optional: true },
  },
};

const BOM: Bom = {
  specVersion: '1.5',
  metadata: { component: { name: 'folder', 'bom-ref': 'skill-operator@1.0.0' } },
  components: [
    component('zod', '4.0.0'),
    component('@kubernetes/client-node', '2.0.0'),
    component('ms', '2.1.0'),
    component('vitest', '5.0.0'),
    component('@napi-rs/nice', '1.0.0'),
  ],
  dependencies: [
    { ref: 'skill-operator@1.0.0', dependsOn: ['zod@4.0.0', 'vitest@5.0.0'] },
    { ref: 'zod@4.0.0', dependsOn: ['ms@2.1.0', '@napi-rs/nice@1.0.0'] },
    { ref: 'vitest@5.0.0', dependsOn: ['zod@4.0.0'] },
  ],
};

test('the bill has what is bundled, under the name of the project', () => {
  const bill = billOf(BOM, 'skill-operator', LOCK);
  expect(bill.metadata.component.name).toBe('skill-operator');
  expect(bill.components.map((one) => one['bom-ref'])).toEqual([
    'zod@4.0.0',
    '@kubernetes/client-node@2.0.0',
    'ms@2.1.0',
  ]);
  expect(bill.dependencies).toEqual([
    { ref: 'skill-operator@1.0.0', dependsOn: ['zod@4.0.0'] },
    { ref: 'zod@4.0.0', dependsOn: ['ms@2.1.0'] },
  ]);
});

test('a package of the lock file that npm does not tell is an error', () => {
  const bom = { ...BOM, components: BOM.components.slice(1) };
  expect(() => billOf(bom, 'skill-operator', LOCK)).toThrow('pkg:npm/zod@4.0.0');
});

test('the lock file marks the packages that package.json needs at run time as such', () => {
  const packages = lock.packages as Record<string, { dev?: boolean; optional?: boolean }>;
  const marked = Object.keys(manifest.dependencies).filter((name) => {
    const entry = packages[`node_modules/${name}`];
    return !entry || entry.dev || entry.optional;
  });
  expect(marked).toEqual([]);
});

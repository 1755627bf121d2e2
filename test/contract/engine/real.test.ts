import { describe, expect, it } from 'vitest';
import { advance } from '../../../src/engine/advance.ts';
import { CubeSandboxEngine } from '../../../src/engine/cubesandbox.ts';
import { E2BEngine } from '../../../src/engine/e2b.ts';
import type { SandboxEngine, TemplateRef } from '../../../src/engine/port.ts';
import { eventually } from '../../support/eventually.ts';
import { cubeContract } from './suite.cubesandbox.ts';
import { e2bContract } from './suite.e2b.ts';
import { freshName, type Opened } from './suite.ts';

/**
 * The same suites against real engines, where the environment names one:
 * SKILL_OPERATOR_TEST_<E2B|CUBE>_URL, …_KEY, and …_IMAGE, a `repository@sha256:…` that the engine can pull.
 */
interface Real {
  url: string;
  key: string | undefined;
  image: string;
}

function real(prefix: string): Real | undefined {
  const of = (name: string) => process.env[`SKILL_OPERATOR_TEST_${prefix}_${name}`];
  const [url, key, image] = [of('URL'), of('KEY'), of('IMAGE')];
  if (url && image) return { url, key, image };
  console.log(`no real ${prefix} engine: set SKILL_OPERATOR_TEST_${prefix}_URL, _KEY and _IMAGE to run its contract`);
  return undefined;
}

const open = async ({ url, key }: Real): Promise<Opened<never>> => ({
  url,
  key,
  stub: undefined,
  [Symbol.asyncDispose]: async () => {},
});
const keyOf = ({ key }: Real) => (key === undefined ? {} : { key: async () => ({ value: key }) });

const e2b = real('E2B');
if (e2b) {
  e2bContract({ real: true, image: e2b.image, open: () => open(e2b) });
  lifecycle(new E2BEngine({ url: e2b.url, ...keyOf(e2b) }), e2b.image);
}
const cube = real('CUBE');
if (cube) {
  cubeContract({ real: true, image: cube.image, open: () => open(cube) });
  lifecycle(new CubeSandboxEngine({ url: cube.url, ...keyOf(cube) }), cube.image);
}

describe('real engines', () => {
  it.skipIf(!e2b && !cube)('are given by the environment', () => {
    expect(e2b ?? cube).toBeDefined();
  });
});

function lifecycle(engine: SandboxEngine, image: string): void {
  it(`${engine.kind}: a template is registered, found and deleted`, { timeout: 3_600_000 }, async () => {
    const signal = new AbortController().signal;
    const spec = { name: freshName(), image, resources: { cpuMillis: 1000, memoryMiB: 1024, writableLayerMiB: 2048 } };
    let ref: TemplateRef | undefined;
    const startedAt = Date.now();
    const wait = { timeoutMs: 3_000_000, intervalMs: 5_000, what: 'the template' };
    const end = await eventually(async () => {
      const result = await advance(engine, spec, { ref, startedAt, held: new Set() }, Date.now(), signal);
      if (result.step === 'persist') ref = result.ref;
      return (result.step === 'ready' || result.step === 'failed') && result;
    }, wait);
    expect(end.step).toBe('ready');
    const own = ref as TemplateRef;
    expect(await engine.exists(own.templateId, signal)).toBe(true);
    await eventually(async () => (await engine.delete(own, signal)) !== undefined, { ...wait, what: 'the removal' });
    expect(await engine.exists(own.templateId, signal)).toBe(false);
  });
}

import { describe, expect, it } from 'vitest';
import { DEFAULT_TIER1_MAP, engineOf, isTier1, tier1Entry, tier1Template } from '../../../src/engine/tier1.ts';
import { RUNTIMES } from '../../../src/protocol/types.ts';

const never = new AbortController().signal;

it('isTier1 and engineOf know every runtime', () => {
  expect(RUNTIMES.map((runtime) => [runtime, isTier1(runtime), engineOf(runtime)])).toMatchInlineSnapshot(`
    [
      [
        "prompt-only",
        false,
        undefined,
      ],
      [
        "cubesandbox::python",
        true,
        "cubesandbox",
      ],
      [
        "cubesandbox::node",
        true,
        "cubesandbox",
      ],
      [
        "e2b::python",
        true,
        "e2b",
      ],
      [
        "e2b::node",
        true,
        "e2b",
      ],
      [
        "cubesandbox",
        false,
        "cubesandbox",
      ],
      [
        "e2b",
        false,
        "e2b",
      ],
    ]
  `);
});

describe('tier1Template', () => {
  it('is the entry of the map where no engine is asked', async () => {
    expect(await tier1Template(DEFAULT_TIER1_MAP, 'cubesandbox::python', undefined, never)).toEqual({
      engine: 'cubesandbox',
      templateId: 'cube-tpl-py',
    });
  });

  it('is what the engine makes of the entry', async () => {
    const engine = { resolve: async (entry: string) => `id-of-${entry}` };
    expect(await tier1Template(DEFAULT_TIER1_MAP, 'e2b::node', engine, never)).toEqual({
      engine: 'e2b',
      templateId: 'id-of-e2b-node',
    });
  });

  it('stalls with the entry when the engine does not know it', async () => {
    const engine = { resolve: async () => undefined };
    const failed = tier1Template(DEFAULT_TIER1_MAP, 'e2b::python', engine, never);
    await expect(failed).rejects.toMatchObject({ reason: 'TemplateNotFound', policy: 'Stalled' });
    await expect(failed).rejects.toThrowErrorMatchingInlineSnapshot(
      `[PolicyError: E2B does not know the template e2b-python of runtime e2b::python. Register it, or correct the entry of e2b::python in the template map.]`,
    );
  });

  it.each([{}, { 'e2b::node': ' ' }])('stalls without an entry: %j', (map) => {
    expect(() => tier1Entry(map, 'e2b::node')).toThrow(
      expect.objectContaining({ reason: 'TemplateNotConfigured', policy: 'Stalled' }),
    );
    expect(() => tier1Entry({}, 'e2b::node')).toThrowErrorMatchingInlineSnapshot(
      `[PolicyError: No platform template is configured for runtime e2b::node. Add e2b::node to the template map in the operator configuration.]`,
    );
  });
});

import { describe, expect, test } from 'vitest';
import { type BuildContent, inputHash } from '../../../src/build/hash.ts';
import type { BuildSettings } from '../../../src/build/settings.ts';
import { FULL, hex, SETTINGS } from './samples.ts';

const CONTENT: BuildContent = { tarSHA256: hex('1'), dockerfileSHA256: hex('2') };
const BASE = inputHash(CONTENT, SETTINGS);

describe('inputHash', () => {
  test('is 64 hex digits and stays what it was, or every image would be built again', () => {
    expect(BASE).toMatchInlineSnapshot(`"e76d58aae906098d16642c48c68963452a764c0832716177aefa5401abbbc0f0"`);
  });

  test.each<[string, Partial<BuildContent>, Partial<BuildSettings>]>([
    ['context', { tarSHA256: hex('3') }, {}],
    ['Dockerfile', { dockerfileSHA256: hex('3') }, {}],
    ['context and Dockerfile changed places', { tarSHA256: hex('2'), dockerfileSHA256: hex('1') }, {}],
    ['builder', {}, { builderImage: `kaniko@sha256:${hex('f')}` }],
    ['architecture', {}, { architecture: 'arm64' }],
    ['value of rebuild', { rebuild: '1' }, {}],
  ])('changes with another %s', (_what, content, settings) => {
    expect(inputHash({ ...CONTENT, ...content }, { ...SETTINGS, ...settings })).not.toBe(BASE);
  });

  test('does not change with mirrors, proxies, resources, deadlines or the registry', () => {
    const { architecture, builderImage } = SETTINGS;
    expect(inputHash(CONTENT, { ...FULL, architecture, builderImage })).toBe(BASE);
  });
});

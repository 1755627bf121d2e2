import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isPinnedImage, plainName, sameTemplate, settingsHash, templateName } from '../../../src/engine/names.ts';

const digest = `sha256:${'a'.repeat(64)}`;
const resources = { cpuMillis: 1000, memoryMiB: 1024 };
const identity = {
  installation: '2f9c',
  namespace: 'team-a',
  skill: 'market.docs.pdf',
  engine: 'e2b',
  imageDigest: digest,
  settings: settingsHash({ resources }),
} as const;

describe('templateName', () => {
  it('is stable: a changed hash would register every template anew', () => {
    expect(templateName('pdf', identity)).toMatchInlineSnapshot(`"pdf-5cf3390a740a"`);
    expect(settingsHash({ resources })).toMatchInlineSnapshot(`"a91c63ce8525e121"`);
  });

  it.each([
    ['pdf', /^pdf-[0-9a-f]{12}$/],
    ['PDF Tools_v2', /^pdf-tools-v2-/],
    ['-x-', /^x-[0-9a-f]{12}$/],
    ['a'.repeat(64), /^a{30}-[0-9a-f]{12}$/],
    [`${'a'.repeat(29)}-b`, /^a{29}-[0-9a-f]{12}$/],
    ['tpl-x', /^s-tpl-x-/],
    ['tpl', /^s-tpl-/],
    ['snap', /^s-snap-/],
    ['snapper', /^snapper-/],
    ['日本', /^skill-/],
  ])('makes of %j a name both engines take', (bare, pattern) => {
    expect(templateName(bare, identity)).toMatch(pattern);
  });

  it.each([
    ['installation', { installation: 'other' }],
    ['namespace', { namespace: 'team-b' }],
    ['Skill', { skill: 'market.docs.pdf2' }],
    ['engine', { engine: 'cubesandbox' as const }],
    ['image', { imageDigest: `sha256:${'b'.repeat(64)}` }],
    ['settings', { settings: settingsHash({ resources: { ...resources, memoryMiB: 512 } }) }],
  ])('changes with the %s', (_what, change) => {
    expect(templateName('pdf', { ...identity, ...change })).not.toBe(templateName('pdf', identity));
  });

  it('fits both engines for any input', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.string(), (bare, namespace, skill) => {
        const name = templateName(bare, { ...identity, namespace, skill });
        return (
          name.length <= 63 && /^[a-z0-9][a-z0-9-]*$/.test(name) && !/^(?:tpl|snap)-/.test(name) && name.includes('-')
        );
      }),
    );
  });

  it('keeps fields apart that would read alike side by side', () => {
    const left = templateName('pdf', { ...identity, namespace: 'a', skill: 'b-c' });
    expect(left).not.toBe(templateName('pdf', { ...identity, namespace: 'a-b', skill: 'c' }));
  });
});

describe('settingsHash', () => {
  it.each([
    ['cpu', { resources: { ...resources, cpuMillis: 2000 } }],
    ['writable layer', { resources: { ...resources, writableLayerMiB: 4096 } }],
    ['start command', { resources, startCommand: 'serve' }],
    ['ready command', { resources, readyCommand: 'serve' }],
  ])('changes with the %s', (_what, settings) => {
    expect(settingsHash(settings)).not.toBe(settingsHash({ resources }));
  });
});

describe('sameTemplate', () => {
  const name = templateName('pdf', identity);
  it.each([
    [name, true],
    [`acme/${name}:default`, true],
    [name.toUpperCase(), true],
    [templateName('renamed', identity), true],
    [templateName('pdf', { ...identity, namespace: 'b' }), false],
    ['pdf', false],
    ['', false],
  ])('compares %j with the own name: %s', (other, expected) => {
    expect(sameTemplate(other, name)).toBe(expected);
  });

  it('is false for two names without a hash', () => {
    expect(sameTemplate('pdf', 'pdf')).toBe(false);
  });
});

it.each([
  ['acme/pdf-1:default', 'pdf-1'],
  [' Pdf ', 'pdf'],
  ['a/b/c', 'c'],
])('plainName reads %j as %j', (name, expected) => {
  expect(plainName(name)).toBe(expected);
});

it.each([
  [`r.example.com:5000/a/b@${digest}`, true],
  [`r/a:tag@${digest}`, true],
  ['r/a:latest', false],
  ['r/a@sha256:abc', false],
  [`r/a b@${digest}`, false],
  [`http://r/a@${digest}`, false],
  [`-r/a@${digest}`, false],
  [`${'a'.repeat(500)}@${digest}`, false],
])('isPinnedImage(%j) is %s', (image, expected) => {
  expect(isPinnedImage(image)).toBe(expected);
});

import { describe, expect, test } from 'vitest';
import {
  effectiveSkill,
  effectiveSource,
  gitLocation,
  notSupportedYet,
  parseDuration,
} from '../../../src/api/defaults.ts';
import type { MarketplaceSourceSpec } from '../../../src/api/marketplacesource.ts';
import type { SkillSpec } from '../../../src/api/skill.ts';

const source = (extra: Partial<MarketplaceSourceSpec> = {}): MarketplaceSourceSpec => ({
  type: 'git',
  git: { url: 'https://h/x.git' },
  ...extra,
});
const skill = (git: object = {}, extra: Partial<SkillSpec> = {}): SkillSpec => ({
  source: { git: { url: 'https://h/x.git', ...git } },
  plugin: 'p',
  path: 'plugins/p/skills/s',
  ...extra,
});

describe('parseDuration', () => {
  test.each([
    ['10s', 10_000],
    ['1h30m', 5_400_000],
    ['1.5h', 5_400_000],
    ['250ms', 250],
    ['1m0.5s', 60_500],
    ['', undefined],
    ['10', undefined],
    ['-5m', undefined],
    ['5 m', undefined],
    ['1d', undefined],
    ['1e3s', undefined],
  ])('%s is %s ms', (text, ms) => expect(parseDuration(text)).toBe(ms));
});

describe('effectiveSource', () => {
  test('fills in what the spec leaves open', () => {
    expect(effectiveSource(source())).toMatchInlineSnapshot(`
      {
        "exclude": [],
        "include": [],
        "intervalMs": 300000,
        "prune": {
          "maxPercent": 50,
          "policy": "Delete",
        },
        "suspend": false,
        "timeoutMs": 60000,
      }
    `);
  });
  test('takes what the spec says', () => {
    const spec = source({
      interval: '1h',
      timeout: '5s',
      suspend: true,
      prune: { policy: 'Keep', maxPercent: 0 },
      include: ['a/*'],
    });
    expect(effectiveSource(spec)).toEqual({
      ...{ intervalMs: 3_600_000, timeoutMs: 5000, suspend: true, prune: { policy: 'Keep', maxPercent: 0 } },
      ...{ include: ['a/*'], exclude: [] },
    });
  });
  test.each([
    ['1s', 10_000],
    ['9999h', 604_800_000],
    ['nonsense', 300_000],
  ])('an interval of %s that an older release stored counts as %i ms', (interval, ms) => {
    expect(effectiveSource(source({ interval })).intervalMs).toBe(ms);
  });
});

test('effectiveSkill fills in what the spec leaves open', () => {
  expect(effectiveSkill(skill())).toMatchInlineSnapshot(`
    {
      "deletionPolicy": "Delete",
      "intervalMs": 300000,
      "suspend": false,
      "timeoutMs": 60000,
      "versionHistoryLimit": 1,
    }
  `);
  expect(effectiveSkill(skill({ interval: '1m' }, { versionHistoryLimit: 0, deletionPolicy: 'Orphan' }))).toMatchObject(
    {
      ...{ intervalMs: 60_000, versionHistoryLimit: 0, deletionPolicy: 'Orphan' },
    },
  );
});

describe('gitLocation', () => {
  test.each<[string, MarketplaceSourceSpec, { url: string; root: string } | undefined]>([
    [
      'github',
      { type: 'github', github: { repository: 'acme/skills' } },
      { url: 'https://github.com/acme/skills.git', root: '' },
    ],
    [
      'github with .git and a base address',
      { type: 'github', github: { repository: 'acme/skills.git', baseURL: 'https://gh.example.com//' } },
      { url: 'https://gh.example.com/acme/skills.git', root: '' },
    ],
    ['git', source(), { url: 'https://h/x.git', root: '' }],
    [
      'git-subdir',
      { type: 'git-subdir', gitSubdir: { url: 'https://h/x', path: 'a/b' } },
      { url: 'https://h/x', root: 'a/b' },
    ],
    ['inline', { type: 'inline', inline: { configMapRef: { name: 'x' }, items: [] } }, undefined],
    ['a type without its member', { type: 'git' }, undefined],
  ])('of %s', (_title, spec, location) => expect(gitLocation(spec)).toEqual(location));
});

describe('notSupportedYet', () => {
  test.each<[string | undefined, MarketplaceSourceSpec]>([
    [undefined, source()],
    ['spec.archive', { type: 'archive', archive: { objectKey: 'x' } }],
    ['spec.inline', { type: 'inline', inline: { configMapRef: { name: 'x' }, items: [] } }],
    [undefined, source({ webhook: { secretRef: { name: 'x' } }, proxySecretRef: { name: 'x' } })],
  ])('names %s', (field, spec) => expect(notSupportedYet(spec)).toBe(field));
});

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type BuildIdentity,
  imageRepository,
  imageTag,
  jobName,
  ownsImage,
  parsePinned,
  pinnedImage,
} from '../../../src/build/names.ts';
import { hex } from './samples.ts';

const IDENTITY: BuildIdentity = {
  installation: 'prod-1',
  namespace: 'team-a',
  skill: 'acme.docs.pdf',
  uid: 'uid-1',
  engine: 'e2b',
  inputHash: hex('b'),
};

const label = (max: number) => fc.stringMatching(new RegExp(`^[a-z0-9]([a-z0-9-]{0,${max - 2}}[a-z0-9])?$`));
const subdomain = fc
  .array(label(63), { minLength: 1, maxLength: 4 })
  .map((labels) => labels.join('.'))
  .filter((name) => name.length <= 253);

describe('jobName', () => {
  test('is readable and numbered', () => {
    expect(jobName(IDENTITY, 3)).toMatch(/^sb-[0-9a-f]{16}-3$/);
  });

  test.each<[string, Partial<BuildIdentity>]>([
    ['installation', { installation: 'prod-2' }],
    ['namespace', { namespace: 'team-b' }],
    ['Skill', { skill: 'acme.docs.png' }],
    ['Skill of the same name created anew', { uid: 'uid-2' }],
    ['engine', { engine: 'cubesandbox' }],
    ['input', { inputHash: hex('c') }],
  ])('differs for another %s', (_what, change) => {
    expect(jobName({ ...IDENTITY, ...change }, 1)).not.toBe(jobName(IDENTITY, 1));
  });
});

describe('imageRepository', () => {
  test('names installation, namespace, Skill and engine', () => {
    expect(imageRepository('skills/v1', IDENTITY)).toMatchInlineSnapshot(
      `"skills/v1/prod-1/team-a/acme.docs.pdf-8ebf9cff-e2b"`,
    );
    expect(imageRepository('', IDENTITY)).toMatch(/^prod-1\/team-a\//);
  });

  test('keeps two long names of one beginning apart', () => {
    const [a, b] = ['x', 'y'].map((end) => imageRepository('', { ...IDENTITY, skill: `${'a'.repeat(60)}${end}` }));
    expect(a).not.toBe(b);
  });

  test('is a repository name for whatever names Kubernetes allows', () => {
    const component = /^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*$/;
    fc.assert(
      fc.property(subdomain, label(63), label(63), (skill, namespace, installation) => {
        const repository = imageRepository('p', { ...IDENTITY, skill, namespace, installation });
        expect(repository.split('/').filter((part) => !component.test(part))).toEqual([]);
        expect(repository.length).toBeLessThan(255);
      }),
    );
  });
});

describe('pinned images', () => {
  const digest = `sha256:${hex('e')}`;
  const image = pinnedImage('registry:5000', 'skills/a', digest);

  test('come apart as they were put together', () => {
    expect(parsePinned(image)).toEqual({ host: 'registry:5000', repository: 'skills/a', digest });
  });

  test.each(['registry/a:tag', 'a@sha256:12', `${image}0`, ''])('are nothing else: %s', (text) => {
    expect(parsePinned(text)).toBeUndefined();
  });

  test.each<[string, string, boolean]>([
    ['registry:5000', 'skills/a', true],
    ['registry:5001', 'skills/a', false],
    ['registry:5000', 'skills/ab', false],
    ['registry:5000', 'skills', false],
  ])('belong to host %s and repository %s: %s', (host, repository, expected) => {
    expect(ownsImage(image, host, repository)).toBe(expected);
  });

  test('get a tag that follows from the digest', () => {
    expect(imageTag(digest)).toBe('e'.repeat(32));
  });
});

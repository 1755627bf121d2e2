import { describe, expect, test } from 'vitest';
import { imageKey, keySpace, markKey, packageKeys, uploadKey } from '../../../src/store/keys.ts';

const DIGEST = 'ab'.repeat(32);
const space = keySpace('skills', 'f3c1');

describe('keys of the bucket', () => {
  test('every thing of the design has its place below <prefix>/v1/<installation>/', () => {
    const keys = packageKeys(space, 'team-a', DIGEST);
    expect(
      [
        keys.tar,
        keys.manifest,
        keys.privatePart('skillenv'),
        keys.privatePart('Dockerfile'),
        imageKey(space, { namespace: 'team-a', skill: 'acme.docs.pdf', engine: 'e2b', inputHash: DIGEST }),
        uploadKey(space, 'team-a', DIGEST),
        markKey(space, 'packages', 'team-a', DIGEST),
        markKey(space, 'images', 'team-a', `acme.docs.pdf-e2b/${DIGEST}.json`),
      ].map((key) => key.replaceAll(DIGEST, '<digest>')),
    ).toMatchInlineSnapshot(`
      [
        "skills/v1/f3c1/packages/team-a/<digest>/package.tar",
        "skills/v1/f3c1/packages/team-a/<digest>/manifest.json",
        "skills/v1/f3c1/private/team-a/<digest>/skillenv",
        "skills/v1/f3c1/private/team-a/<digest>/Dockerfile",
        "skills/v1/f3c1/images/team-a/acme.docs.pdf-e2b/<digest>.json",
        "skills/v1/f3c1/uploads/team-a/<digest>",
        "skills/v1/f3c1/marks/packages/team-a/<digest>",
        "skills/v1/f3c1/marks/images/team-a/acme.docs.pdf-e2b/<digest>.json",
      ]
    `);
  });

  test('without a prefix the keys begin with v1', () => {
    expect(keySpace('', 'f3c1').root).toBe('v1/f3c1/');
  });

  test.each(['a/b', 'a.b-c_d/e'])('the prefix %s is accepted', (prefix) => {
    expect(keySpace(prefix, 'x').root).toBe(`${prefix}/v1/x/`);
  });

  test.each(['/a', 'a/', 'a//b', '..', 'a/../b', './a', 'a b', 'ü', 'a\u0000', 'a'.repeat(257)])(
    'the prefix %j is refused as a setting',
    (prefix) => {
      expect(() => keySpace(prefix, 'x')).toThrow(expect.objectContaining({ reason: 'StoreConfigInvalid' }));
    },
  );

  test.each(['', 'A', '-a', 'a/b', '..', 'a'.repeat(64)])('the installation id %j is refused as a setting', (id) => {
    expect(() => keySpace('', id)).toThrow(expect.objectContaining({ reason: 'StoreConfigInvalid' }));
  });

  test.each<[string, () => unknown]>([
    ['a namespace that climbs', () => packageKeys(space, '..', DIGEST)],
    ['an empty namespace', () => packageKeys(space, '', DIGEST)],
    ['a namespace with a slash', () => uploadKey(space, 'a/b', DIGEST)],
    ['a short digest', () => packageKeys(space, 'a', 'abc')],
    ['a digest in capitals', () => packageKeys(space, 'a', DIGEST.toUpperCase())],
    ['a digest with a line end', () => packageKeys(space, 'a', `${DIGEST}\n`)],
    ['an unknown private part', () => packageKeys(space, 'a', DIGEST).privatePart('../manifest.json')],
    ['an unknown engine', () => imageKey(space, { namespace: 'a', skill: 's', engine: 'x', inputHash: DIGEST })],
    [
      'a Skill name that is no subdomain',
      () => imageKey(space, { namespace: 'a', skill: 'a/b', engine: 'e2b', inputHash: DIGEST }),
    ],
    ['a mark that climbs', () => markKey(space, 'uploads', 'a', '../x')],
    ['a mark that is too long', () => markKey(space, 'uploads', 'a', 'x'.repeat(1100))],
  ])('%s never becomes a key', (_name, make) => {
    expect(make).toThrow(expect.objectContaining({ reason: 'InternalError', policy: 'Stalled' }));
  });
});

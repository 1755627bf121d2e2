import { describe, expect, test } from 'vitest';
import { compileFilter } from '../../../src/marketplace/globs.ts';
import { thrown } from './failure.ts';

describe('compileFilter', () => {
  test.each<[string[] | undefined, string[] | undefined, string, boolean]>([
    [undefined, undefined, 'docs/pdf', true],
    [[], [], 'docs/pdf', true],
    [['docs/*'], undefined, 'docs/pdf', true],
    [['docs/*'], undefined, 'office/pdf', false],
    [['*/pdf'], undefined, 'docs/pdf', true],
    [['**'], ['docs/**'], 'docs/pdf', false],
    [['{docs,office}/p?f'], undefined, 'office/pdf', true],
    [['docs/[a-o]*'], undefined, 'docs/pdf', false],
    [['docs/*'], undefined, 'docs/.hidden', true],
    [['!docs/*'], undefined, 'docs/pdf', false],
    [['!docs/*'], undefined, 'office/pdf', false],
    [['docs'], undefined, 'docs/pdf', false],
    [undefined, ['Docs/*'], 'docs/pdf', true],
    [['dö/*'], undefined, 'dö/x', true],
  ])('include %j exclude %j: %s is %s', (include, exclude, name, expected) => {
    expect(compileFilter(include, exclude)(name)).toBe(expected);
  });

  test.each(['(a+)+$', 'a|b', '^x', 'a\\b', 'a\nb', 'a'.repeat(300), '*a*a*a*a*b', '@(x)', '+(x)'])(
    'refuses the pattern %j',
    (pattern) => {
      expect(thrown(() => compileFilter([pattern], undefined))).toContain('Stalled InvalidSpec: include pattern');
    },
  );

  test('says what a pattern may be', () => {
    expect(thrown(() => compileFilter(undefined, ['docs/(a|b)']))).toMatchInlineSnapshot(
      `"Stalled InvalidSpec: exclude pattern "docs/(a|b)" has characters that globs do not take: use *, **, ?, [abc] and {a,b} over <plugin>/<skill>"`,
    );
    expect(
      thrown(() =>
        compileFilter(
          undefined,
          Array.from({ length: 101 }, () => 'x/*'),
        ),
      ),
    ).toMatchInlineSnapshot(`"Stalled InvalidSpec: exclude has more than 100 patterns: join some of them"`);
  });

  test('the worst accepted pattern on the longest name stays fast', () => {
    const matches = compileFilter(['*a*a*b/*a*a*b'], undefined);
    const began = performance.now();
    matches(`${'a'.repeat(250)}/${'a'.repeat(250)}`);
    expect(performance.now() - began).toBeLessThan(1_000);
  });
});

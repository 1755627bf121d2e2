import { cp, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { examples, repository, skillctl, spawnProgram, temporaryDirectory } from './helpers.ts';

const GUIDE = join(repository, 'docs/guides/authoring-skills.md');
const GUIDE_DIRECTORY = '/tmp/my-market';
/** The guide starts npm a good many times. */
const GUIDE_TIMEOUT_MS = 5 * 60_000;

const blocks = (markdown: string, language: string): string[] =>
  [...markdown.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].filter((m) => m[1] === language).map((m) => m[2] ?? '');

test(
  'every command of the authoring guide runs as printed and shows what the guide says',
  async () => {
    await using temporary = await temporaryDirectory();
    const here = join(temporary.path, 'my-market');
    const guide = (await readFile(GUIDE, 'utf8')).replaceAll(GUIDE_DIRECTORY, here);
    const outcomes: { out: string; err: string }[] = [];
    for (const script of blocks(guide, 'sh')) {
      const { code, out, err } = await spawnProgram('sh', ['-ec', script], { cwd: repository });
      expect(code, `${script}\n${out}\n${err}`).toBe(0);
      outcomes.push({ out, err });
    }
    const [start, violations] = outcomes;
    expect(start?.out).toBe('1 skill: 1 valid, 0 invalid (0 errors, 0 warnings)\n');
    expect(start?.err).toContain('has no files tracked by Git');
    expect(violations?.out).toBe(blocks(guide, '')[0]);
  },
  GUIDE_TIMEOUT_MS,
);

test('every example of the help texts runs as printed', async () => {
  await using temporary = await temporaryDirectory();
  await cp(examples, join(temporary.path, 'examples/marketplace'), { recursive: true });
  const help = await Promise.all(['validate', 'pack'].map((command) => skillctl(repository, command, '--help')));
  const lines = help.flatMap(({ out }) => [...out.matchAll(/^ {2}\$ skillctl (.*)$/gm)].map((match) => match[1] ?? ''));
  expect(lines.length).toBeGreaterThanOrEqual(6);
  for (const line of lines) {
    const [args = ''] = line.split(' > ');
    const { code, out, err } = await skillctl(temporary.path, ...args.split(' '));
    expect(code, `${line}\n${err}`).toBeLessThanOrEqual(1);
    expect(out, line).not.toBe('');
  }
});

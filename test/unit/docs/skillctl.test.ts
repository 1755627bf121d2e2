import { expect, test } from 'vitest';
import { runSkillctl } from '../../../src/cli/program.ts';
import { blocks, commands, type Page, pages } from '../../support/markdown.ts';

const TIMEOUT_MS = 10_000;

/** What `skillctl <words> --help` prints; undefined when there is no such command. */
async function help(words: readonly string[]): Promise<string | undefined> {
  let out = '';
  const io = {
    cwd: '/',
    colors: false,
    out: (text: string) => {
      out += text;
    },
    err: () => {},
  };
  const code = await runSkillctl([...words, '--help'], io, AbortSignal.timeout(TIMEOUT_MS));
  return code === 0 && out.includes(`skillctl ${words.join(' ')}`) ? out : undefined;
}

interface Call {
  page: string;
  line: string;
  /** What stands behind the program's name, up to a pipe, a redirection or the next command. */
  words: string[];
}

/** Every call of skillctl that a page shows: typed, inside a CI file, or between backquotes. */
function calls(of: Page): Call[] {
  const inline = [...of.text.matchAll(/`(skillctl [^`\n]+)`/g)].map(([, text = '']) => text);
  const lines = [...commands(of), ...blocks(of, 'yaml').flatMap((block) => block.split('\n')), ...inline];
  return lines.flatMap((line) => {
    const [, behind] = /(?:skillctl(?:\.js)?|npm run -s skillctl --|kubectl skills) (.*)$/.exec(line) ?? [];
    if (behind === undefined) return [];
    const words = (behind.split(/ [|&;>#]| \d>/)[0] ?? '').trim().split(/\s+/);
    return [{ page: of.path, line, words }];
  });
}

const found = pages().flatMap(calls);

test('the pages show calls of skillctl', () => {
  expect(found.length).toBeGreaterThan(10);
});

test.each(found)('$page: "$line" names a command and options that exist', async ({ words }) => {
  const options = words.filter((word) => word.startsWith('-') && word !== '--help' && word !== '--');
  const [command = '', second = ''] = words;
  // A command of a group, such as `platform register`, has two words.
  const text = (await help([command, second].filter((word) => /^[a-z-]+$/.test(word)))) ?? (await help([command]));
  expect(text, `skillctl has no command ${command}`).toBeDefined();
  const known = new Set(text?.match(/(?<=[\s,])--?[a-zA-Z][\w-]*/g));
  expect(options.map((option) => option.split('=')[0] ?? '').filter((option) => !known.has(option))).toEqual([]);
});

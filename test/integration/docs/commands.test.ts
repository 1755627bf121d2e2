import { expect, test } from 'vitest';
import { examples, originals, ROOT } from '../../support/markdown.ts';
import { spawnProgram } from '../cli/helpers.ts';

const skillctl = originals()
  .flatMap(examples)
  .filter(({ command }) => command.startsWith('npm run -s skillctl -- '));

test.each(skillctl)('$page: "$command" prints what the page shows', async ({ command, output }) => {
  const [program = '', ...args] = command.split(' ');
  const { out } = await spawnProgram(program, args, { cwd: ROOT });
  expect(out.trimEnd().split('\n')).toEqual(output.filter((line, i) => line !== '' || i < output.length - 1));
});

test('the pages show at least one run of skillctl', () => {
  expect(skillctl.length).toBeGreaterThan(0);
});

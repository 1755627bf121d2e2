import { copyFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { examples, repository, skillctl, spawnProgram, temporaryDirectory } from './helpers.ts';

test('the bundled skillctl runs without node_modules and prints what the source prints', async () => {
  await using temporary = await temporaryDirectory();
  const args = ['scripts/build.ts', '--outdir', temporary.path, 'skillctl'];
  const built = await spawnProgram(process.execPath, args, { cwd: repository });
  expect(built).toMatchObject({ code: 0, err: '' });
  expect(built.out).toMatch(/^skillctl\.js +\d+ KiB +\d+ ms\n$/);

  const program = join(temporary.path, 'skillctl.js');
  expect((await stat(program)).mode & 0o111).toBe(0o111);
  const alone = join(temporary.path, 'skillctl.mjs');
  await copyFile(program, alone);
  const bundled = await spawnProgram(process.execPath, [alone, 'validate', 'examples/marketplace'], {
    cwd: repository,
  });
  const source = await skillctl(repository, 'validate', 'examples/marketplace');
  expect(bundled).toEqual(source);
  expect(bundled.code).toBe(1);
});

test('colours appear on a terminal only', async () => {
  const args = [join(repository, 'src/cli/skillctl.ts'), 'validate', '.'];
  const piped = await spawnProgram(process.execPath, args, { cwd: examples });
  expect(piped.out).not.toContain('\u001b[');
  // script(1) gives the program a terminal of its own.
  const command = [process.execPath, ...args].map((part) => `'${part}'`).join(' ');
  const inTerminal = (env: Record<string, string>) =>
    spawnProgram('script', ['-qec', command, '/dev/null'], { cwd: examples, env: { TERM: 'xterm-256color', ...env } });
  expect((await inTerminal({ NO_COLOR: '' })).out).toContain('\u001b[31merror\u001b[0m');
  expect((await inTerminal({ NO_COLOR: '1' })).out).not.toContain('\u001b[');
});

test('an unknown program name stops the build', async () => {
  await using temporary = await temporaryDirectory();
  const args = ['scripts/build.ts', '--outdir', temporary.path, 'nothing'];
  const { code, err } = await spawnProgram(process.execPath, args, { cwd: repository });
  expect(code).toBe(1);
  expect(err).toContain('unknown program nothing; use main, worker, jobs, skillctl');
});

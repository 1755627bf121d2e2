import { expect, test } from 'vitest';
import { runSkillctl } from '../../../src/cli/program.ts';

async function help(...words: string[]): Promise<string> {
  const parts: string[] = [];
  const io = { cwd: '/', colors: false, err: () => {}, out: (text: string) => void parts.push(text) };
  expect(await runSkillctl([...words, '--help'], io, AbortSignal.timeout(10_000))).toBe(0);
  return parts.join('');
}

const COMMANDS = ['get', 'trace', 'reconcile', 'suspend', 'resume', 'rebuild', 'logs', 'doctor', 'uninstall'];

test.each(COMMANDS)(
  '%s --help says how to choose a cluster and a format, and its examples use options that exist',
  async (name) => {
    const text = await help(name);
    const known = new Set(text.split('\n\nExamples:')[0]?.match(/(?<=[\s,])--?[a-zA-Z][\w-]*/g));
    for (const option of ['--kubeconfig', '--context', '-n', '-o']) expect(known).toContain(option);
    const examples = [...text.matchAll(/^ {2}\$ skillctl (\S+)(.*)$/gm)];
    expect(examples.length).toBeGreaterThan(1);
    for (const [line, command, rest = ''] of examples) {
      expect(command).toBe(name);
      for (const option of rest.match(/(?<=\s)--?[a-zA-Z][\w-]*/g) ?? []) expect(known, line).toContain(option);
    }
  },
);

test('the first page groups the commands', async () => {
  const text = await help();
  expect([...text.matchAll(/^([A-Z][\w ]+):$/gm)].map(([, title]) => title)).toEqual([
    'Options',
    'On this machine',
    'In a cluster',
    'For administrators',
  ]);
  for (const name of COMMANDS) expect(text).toContain(`\n  ${name} `);
});

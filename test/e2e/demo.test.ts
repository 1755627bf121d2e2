import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, inject, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { createRepository } from '../support/git.ts';
import { K8s } from '../support/k8s.ts';
import { examples, page, ROOT } from '../support/markdown.ts';
import { marketplace, skillMd } from '../support/market.ts';

/** The first run on a machine makes the parts of the node. */
const RUN_MS = 600_000;

/** A run of the demo and what it has printed so far. */
interface Demo {
  child: ChildProcess;
  text: () => string;
  /** Exit code. */
  ended: Promise<number | null>;
}

let temp: string;
let demo: Demo | undefined;
beforeEach(() => {
  temp = mkdtempSync(join(tmpdir(), 'demo-test-'));
});
afterEach(async () => {
  demo?.child.kill('SIGINT');
  await demo?.ended;
  demo = undefined;
  rmSync(temp, { recursive: true, force: true });
});

/** Starts the demo with a folder for temporary files of its own, so that a test sees what it leaves behind. */
function start(env: Record<string, string> = {}): Demo {
  const inherited = ['PATH', 'HOME', 'XDG_CACHE_HOME', 'KUBEBUILDER_ASSETS'];
  const base = Object.fromEntries(inherited.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));
  const child = spawn(process.execPath, ['scripts/demo.ts'], {
    cwd: ROOT,
    env: { ...base, CI: 'true', TMPDIR: temp, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const chunks: string[] = [];
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk: Buffer) => chunks.push(String(chunk)));
  const ended = once(child, 'close').then(([code]) => code as number | null);
  demo = { child, text: () => chunks.join(''), ended };
  return demo;
}

async function run(env: Record<string, string> = {}): Promise<{ code: number | null; text: string }> {
  const { ended, text } = start(env);
  return { code: await ended, text: text() };
}

/** Everything below the folder of runs must be gone; the folder itself stays for the next run. */
const leftovers = (): string[] =>
  readdirSync(temp, { recursive: true, encoding: 'utf8' }).filter((path) => /run-|skill-operator-mirror/.test(path));

/** Times, ports and ids differ from run to run; versions, commits and messages do not. */
const normalised = (line: string): string =>
  line
    .replaceAll(/(\d+ min )?\d+(\.\d+)? s\b/g, '<time>')
    .replaceAll(/127\.0\.0\.1:\d+/g, '127.0.0.1:<port>')
    .trim();

/** Lines of an excerpt that the text does not have in that order. */
function missing(excerpt: readonly string[], text: string): string[] {
  const lines = text.split('\n').map(normalised);
  let from = 0;
  return excerpt
    .filter((line) => line !== '' && line !== '…')
    .filter((line) => {
      const at = lines.indexOf(normalised(line), from);
      if (at >= 0) from = at + 1;
      return at < 0;
    });
}

test('make demo shows what the README promises, and leaves nothing behind', { timeout: RUN_MS }, async () => {
  const { code, text } = await run();
  expect(code, text).toBe(0);
  const excerpt = examples(page('README.md')).find(({ command }) => command === 'make demo')?.output ?? [];
  expect(excerpt.length).toBeGreaterThan(20);
  // What becomes of the two skills with images comes in any order, with new ids, and not on every machine.
  const promised = excerpt.filter((line) => !/^ +\S+ s +greeting-|each with an image/.test(line));
  expect(missing(promised, text), text).toEqual([]);
  expect(text).toMatch(/✓ Ready again \d+\.\d s after the push: version [0-9a-f]{12} → [0-9a-f]{12}/);
  if (inject('cluster').node) {
    for (const engine of ['e2b', 'cubesandbox']) {
      const phases = ['Building', 'Registering', 'Ready, template \\S+'].map((phase) => `greeting-${engine} +${phase}`);
      expect(text).toMatch(new RegExp(phases.join('[^]*')));
    }
  } else expect(text).toContain('left out: no node can run on this machine');
  expect(text).not.toContain('\u001b');
  expect(leftovers()).toEqual([]);
});

test('make demo URL=… KEEP=1 takes any marketplace and stays up until it is stopped', { timeout: RUN_MS }, async () => {
  const { git } = inject('cluster');
  const repository = await createRepository(git.root, 'market-for-the-demo');
  const wrong = skillMd({ name: 'other-name' });
  await repository.commit(marketplace({ docs: { pdf: {}, broken: { 'SKILL.md': wrong } } }));
  const { child, text, ended } = start({ URL: `${git.httpUrl}/market-for-the-demo.git`, KEEP: '1' });
  await Promise.race([
    eventually(() => text().includes('aws s3 ls'), { timeoutMs: RUN_MS, what: 'the invitation' }),
    ended.then((code) => Promise.reject(new Error(`the demo ended with ${code}:\n${text()}`))),
  ]);
  expect(text()).toContain('1 of 2 Skills Ready, 1 Invalid');
  expect(text()).toContain('Breaking and mending a skill is left out');
  const kubeconfig = /export KUBECONFIG=(\S+)/.exec(text())?.[1] ?? '';
  await using k8s = new K8s(kubeconfig);
  const skills = await k8s.list({ apiVersion: 'skills.tfrobot.io/v1alpha1', kind: 'Skill', namespace: 'demo' });
  expect(skills.map(({ metadata }) => metadata.name).sort()).toEqual(['examples.docs.broken', 'examples.docs.pdf']);
  child.kill('SIGINT');
  expect(await ended).toBe(0);
  expect(leftovers()).toEqual([]);
});

test.skipIf(!inject('cluster').node)(
  'make demo CHART=1 installs, tests, upgrades, hands over and uninstalls the chart',
  { timeout: RUN_MS },
  async () => {
    const { code, text } = await run({ CHART: '1' });
    expect(code, text).toBe(0);
    const said = [
      /✓ both pods are Ready, skill-operator-\S+ works and the other waits for its Lease/,
      /✓ a pod of the cluster reached the operator/,
      /✓ 6 of 9 Skills Ready, 2 BuildNotConfigured, 1 Invalid/,
      /✓ both pods are new, skill-operator-\S+ has looked at all 9 Skills and written none/,
      /✓ skill-operator-\S+ leads \d+\.\d s later/,
      /✓ Ready again \d+\.\d s after the push/,
      /✓ the release is gone; the CRDs and 9 Skills stay/,
    ];
    expect(
      said.filter((line) => !line.test(text)),
      text,
    ).toEqual([]);
    expect(leftovers()).toEqual([]);
  },
);

test('CHART=1 and a marketplace from elsewhere are refused together, before anything starts', async () => {
  const { code, text } = await run({ CHART: '1', URL: 'https://git.example.com/team/skills.git' });
  expect({ code, text }).toMatchInlineSnapshot(`
    {
      "code": 1,
      "text": "✗ CHART=1 takes no URL: its pods reach this machine alone; leave one of the two out
    ",
    }
  `);
});

test('a marketplace that is not there ends the demo with the reason, and with nothing left behind', {
  timeout: RUN_MS,
}, async () => {
  const { code, text } = await run({ URL: `${inject('cluster').git.httpUrl}/there-is-none.git` });
  expect(code, text).toBe(1);
  expect(text).toContain('✗ this step did not come true');
  expect(text).toContain('RepositoryNotFound');
  expect(leftovers()).toEqual([]);
});

test('Ctrl-C while the servers start ends the demo at once, with nothing left behind', {
  timeout: RUN_MS,
}, async () => {
  const { child, text, ended } = start();
  await eventually(() => text().includes('1/9'), { what: 'the first step' });
  child.kill('SIGINT');
  expect(await ended, text()).toBe(130);
  expect(text()).toContain('Stopped. Everything is removed.');
  expect(leftovers()).toEqual([]);
});

test('an address that the demo cannot read is refused before anything starts', async () => {
  const { code, text } = await run({ URL: 'git@git.example.com:team/skills.git' });
  expect({ code, text }).toMatchInlineSnapshot(`
    {
      "code": 1,
      "text": "✗ repository URL "***@git.example.com:team/skills.git" is not supported: use https://host/path, http://host/path or ssh://user@host/path
    ",
    }
  `);
});

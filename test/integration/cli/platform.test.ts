import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, test } from 'vitest';
import type { Clock } from '../../../src/base/clock.ts';
import { runSkillctl } from '../../../src/cli/program.ts';
import { CubeStub } from '../../contract/engine/stubs/cubesandbox.ts';
import { E2BStub } from '../../contract/engine/stubs/e2b.ts';
import { type Outcome, skillctl, temporaryDirectory } from './helpers.ts';

const DIGEST = `sha256:${'4d'.repeat(32)}`;
const imageOf = (name: string) => `registry.example.com/skills/${name}@${DIGEST}`;
const KEY = 'e2b_aaaaaaaaaaaaaaaa';

/** Runs `skillctl platform register` with a clock that does not wait. */
async function register(cwd: string, ...args: string[]): Promise<Outcome & { slept: number }> {
  const outcome = { out: '', err: '', slept: 0 };
  const clock: Clock = {
    now: () => outcome.slept,
    monotonic: () => outcome.slept,
    sleep: async (ms, signal) => {
      signal.throwIfAborted();
      outcome.slept += ms;
    },
    after: () => () => undefined,
  };
  const io = {
    cwd,
    colors: false,
    out: (text: string) => {
      outcome.out += text;
    },
    err: (text: string) => {
      outcome.err += text;
    },
  };
  const code = await runSkillctl(['platform', 'register', ...args], io, AbortSignal.timeout(30_000), clock);
  return { code, ...outcome };
}

describe('skillctl platform register', () => {
  it('makes a CubeSandbox template and prints its entry of the map; a second run finds it', async () => {
    await using stub = await new CubeStub().listen();
    const args = ['--engine', 'cubesandbox', '--url', stub.url, '--image', imageOf('cubesandbox-python')];
    const first = await register('/', ...args);
    const [id] = stub.templates.keys();
    expect(first).toMatchObject({ code: 0, out: `tier1:\n  cubesandbox::python: ${id}\n` });
    expect(first.err).toMatch(/^registering cubesandbox-python-[0-9a-f]{12} at CubeSandbox\ntemplate tpl-\S+\n/);
    expect(await register('/', ...args)).toMatchObject({ code: 0, out: first.out });
    expect([...stub.templates.keys()]).toEqual([id]);
  });

  it('makes an E2B template with the key and the pull credential of files, and prints JSON', async () => {
    await using stub = await new E2BStub().listen();
    await using temporary = await temporaryDirectory();
    await writeFile(join(temporary.path, 'key'), `${KEY}\n`);
    await writeFile(join(temporary.path, 'password'), 'Passw0rd/registry\n');
    const image = imageOf('e2b-node');
    const result = await register(
      temporary.path,
      ...['--engine', 'e2b', '--url', stub.url, '--image', image, '--key-file', 'key', '--output', 'json'],
      ...['--registry-username', 'puller', '--registry-password-file', 'password'],
    );
    expect(result.code, result.err).toBe(0);
    const printed = JSON.parse(result.out);
    const name = expect.stringMatching(/^e2b-node-[0-9a-f]{12}$/);
    expect(printed).toEqual({
      runtime: 'e2b::node',
      templateId: [...stub.templates.keys()][0],
      engine: 'e2b',
      name,
      image,
    });
    const bodies = stub.seen.filter(({ method }) => method === 'POST').map(({ body }) => JSON.parse(body));
    expect(bodies).toMatchObject([
      { cpuCount: 1, memoryMB: 512 },
      { fromImage: image, fromImageRegistry: { username: 'puller', password: 'Passw0rd/registry' } },
    ]);
    expect(result.out + result.err).not.toMatch(/Passw0rd|e2b_aaaa/);
  });

  it('gives another image another template', async () => {
    await using stub = await new CubeStub().listen();
    for (const name of ['cubesandbox-python', 'cubesandbox-node']) {
      expect((await register('/', '--engine', 'cubesandbox', '--url', stub.url, '--image', imageOf(name))).code).toBe(
        0,
      );
    }
    expect(stub.templates.size).toBe(2);
  });

  it('shows the engine’s words and the fix when the template cannot be made', async () => {
    await using stub = await new CubeStub().listen();
    stub.failures.push('exec format error');
    const failed = await register(
      '/',
      '--engine',
      'cubesandbox',
      '--url',
      stub.url,
      '--image',
      imageOf('cubesandbox-node'),
    );
    expect(failed).toMatchObject({ code: 2, out: '' });
    expect(failed.err).toMatch(/skillctl: .*exec format error.*Build the image for the engine's architecture/);
  });

  it('waits for an engine that restarts, and gives up after a while', async () => {
    await using stub = await new CubeStub().listen();
    const args = ['--engine', 'cubesandbox', '--url', stub.url, '--image', imageOf('cubesandbox-node')];
    stub.fail({ path: /./, times: 2, answer: { status: 503, json: { message: 'starting' } } });
    expect((await register('/', ...args)).code).toBe(0);
    stub.fail({ path: /./, times: 99, answer: { status: 503, json: { message: 'starting' } } });
    const down = await register('/', ...args);
    expect(down).toMatchObject({ code: 2, out: '' });
    expect(down.err).toContain('skillctl: engine unavailable');
    expect(down.slept).toBeLessThan(60_000);
  });

  it('does not ask twice with a key that does not count', async () => {
    await using stub = await new CubeStub().listen();
    stub.key = 'right';
    const args = ['--engine', 'cubesandbox', '--url', stub.url, '--image', imageOf('cubesandbox-node')];
    const refused = await register('/', ...args);
    expect(refused).toMatchObject({ code: 2, out: '', slept: 0 });
    expect(refused.err).toContain('valid key');
  });

  const base = ['--engine', 'cubesandbox', '--url', 'http://127.0.0.1:1'];
  it.each([
    ['an image by tag', [...base, '--image', 'r.example.com/cubesandbox-node:1'], /not pinned.*@sha256:/],
    ['an image that does not tell its language', [...base, '--image', imageOf('cube')], /--language python or node/],
    ['a name that tells two', [...base, '--image', imageOf('node-python')], /--language python or node/],
    ['half a credential', [...base, '--image', imageOf('x-node'), '--registry-username', 'a'], /belong together/],
    [
      'a key file that is not there',
      [...base, '--image', imageOf('x-node'), '--key-file', 'no'],
      /cannot read no \(ENOENT\)/,
    ],
    ['an empty key file', [...base, '--image', imageOf('x-node'), '--key-file', '/dev/null'], /is empty/],
    ['a URL that is none', ['--engine', 'e2b', '--url', 'x', '--image', imageOf('x-node')], /URL/],
    ['no image', base, /required option '--image <image>' not specified/],
    ['an unknown engine', ['--engine', 'docker'], /cubesandbox, e2b/],
  ])('refuses %s with a line that says what to do', async (_title, args, message) => {
    const refused = await register('/', ...args);
    expect(refused).toMatchObject({ code: 2, out: '' });
    expect(refused.err).toMatch(message);
  });
});

test('the help of platform register shows a complete command for each engine', async () => {
  const { out, code } = await skillctl('/', 'platform', 'register', '--help');
  expect(code).toBe(0);
  for (const engine of ['cubesandbox', 'e2b']) {
    expect(out).toMatch(new RegExp(`skillctl platform register --engine ${engine} --url https?://`));
    expect(out).toMatch(new RegExp(`--image \\S+/${engine}-\\w+@sha256:`));
  }
});

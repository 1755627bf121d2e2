import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Clock } from '../../../src/base/clock.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { EXIT } from '../../../src/build/exits.ts';
import { HttpRegistry } from '../../../src/build/registry.ts';
import { parseResult } from '../../../src/build/result.ts';
import { type PushOptions, pushImage } from '../../../src/jobs/push.ts';
import { listen } from '../../support/listen.ts';
import { layoutParts, makePipe, writeLayout } from '../../unit/jobs/layouts.ts';
import { dockerConfig, startRegistry, type TestRegistry } from './registries.ts';
import { runJob } from './run-job.ts';

const signal = new AbortController().signal;
/** Pauses take no time; their lengths are kept. */
function hurriedClock(): Clock & { pauses: number[] } {
  const pauses: number[] = [];
  return { ...systemClock, pauses, sleep: async (ms) => void pauses.push(ms) };
}

let root: string;
let basic: TestRegistry;
let tls: TestRegistry;

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'push-test-'));
  basic = await startRegistry({ auth: 'basic' });
  tls = await startRegistry({ auth: 'basic', tls: true });
});
afterAll(async () => {
  await basic?.[Symbol.asyncDispose]();
  await tls?.[Symbol.asyncDispose]();
  rmSync(root, { recursive: true, force: true });
});

/** A built image and everything that `push` needs for it. */
function prepare(
  registry: Pick<TestRegistry, 'host' | 'username' | 'password'> = basic,
  over: Partial<PushOptions> = {},
): PushOptions {
  const dir = mkdtempSync(join(root, 'push-'));
  writeLayout(join(dir, 'layout'), layoutParts(undefined, dir));
  mkdirSync(join(dir, 'work'));
  writeFileSync(join(dir, 'config.json'), dockerConfig(registry.host, registry.username, registry.password));
  return {
    layout: join(dir, 'layout'),
    work: join(dir, 'work'),
    image: `${registry.host}/team/pdf`,
    maxBytes: 1e9,
    result: join(dir, 'result'),
    credential: join(dir, 'config.json'),
    insecure: true,
    network: {},
    skopeo: 'skopeo',
    ...over,
  };
}

const run = (options: PushOptions, clock: Clock = systemClock) => pushImage(options, clock, signal);

const clientOf = (registry: TestRegistry) =>
  new HttpRegistry({
    host: registry.host,
    insecure: registry.caFile === undefined,
    ca: registry.caFile && readFileSync(registry.caFile, 'utf8'),
    credential: async () => registry,
  });

describe('pushImage', () => {
  test('pushes what it verified and reports digest and size as the registry sees them', async () => {
    const options = prepare();
    const result = await run(options);
    expect(parseResult(readFileSync(options.result, 'utf8'))).toEqual(result);
    expect(await clientOf(basic).image('team/pdf', result.digest, signal)).toEqual(result);
  });

  test('pushes the same image twice without harm', async () => {
    const options = prepare();
    const first = await run(options);
    expect(await run(options)).toEqual(first);
  });

  test('trusts the authority that it is given', async () => {
    const options = prepare(tls, { insecure: false });
    const certificates = join(dirname(options.layout), 'ca');
    mkdirSync(certificates);
    writeFileSync(join(certificates, 'ca.crt'), readFileSync(tls.caFile as string));
    const result = await run({ ...options, certificates });
    expect(await clientOf(tls).has('team/pdf', result.digest, signal)).toBe(true);
  });

  test('leaves no credential on its volume', async () => {
    const options = prepare();
    await run(options);
    const files = readdirSync(options.work, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    const texts = files.map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'));
    expect(texts.length).toBeGreaterThan(3);
    expect(texts.filter((text) => text.includes(basic.password) || text.includes('"auth"'))).toEqual([]);
  });
});

describe('a push that cannot be', () => {
  const rejects = (options: PushOptions, exitCode: number, clock: Clock = hurriedClock()) =>
    expect(run(options, clock)).rejects.toMatchObject({ name: 'JobError', exitCode });

  test('with a wrong password is denied at once', async () => {
    const clock = hurriedClock();
    await rejects(prepare({ ...basic, password: 'wrong-password' }), EXIT.PushDenied, clock);
    expect(clock.pauses).toEqual([]);
  });

  test('without the password that is needed is denied', async () => {
    await rejects(prepare(basic, { credential: undefined }), EXIT.PushDenied);
  });

  test.each<[string, string]>([
    ['nothing for this registry', dockerConfig('other.example.com', 'u', 'p')],
    ['a credential helper, which would be a program', '{"credsStore":"evil"}'],
    ['no JSON', 'x'],
  ])('with a Secret that holds %s is denied', async (_name, text) => {
    const options = prepare();
    writeFileSync(options.credential as string, text);
    await rejects(options, EXIT.PushDenied);
  });

  test('to a registry of an unknown authority is denied', async () => {
    await rejects(prepare(tls, { insecure: false }), EXIT.PushDenied);
  });

  test('of too large an image is refused', async () => {
    await rejects(prepare(basic, { maxBytes: 100 }), EXIT.ImageTooLarge);
  });

  test('of a forged layout is refused before the credential is opened', async () => {
    const options = prepare();
    rmSync(join(options.layout, 'blobs'), { recursive: true });
    symlinkSync('/etc', join(options.layout, 'blobs'));
    // Nobody ever writes into this pipe: whoever opened it would wait for ever.
    rmSync(options.credential as string);
    makePipe(options.credential as string);
    await rejects(options, EXIT.LayoutRefused);
    expect(existsSync(options.result)).toBe(false);
  });

  test('to a registry that is down is given up after four tries', async () => {
    const server = await listen(() => undefined);
    await server.close();
    const clock = hurriedClock();
    await rejects(prepare({ ...basic, host: server.host }), EXIT.PushUnavailable, clock);
    expect(clock.pauses).toEqual([2000, 8000, 32_000]);
  });

  test('by a program that is not there is given up', async () => {
    await rejects(prepare(basic, { skopeo: '/nowhere/skopeo' }), EXIT.PushUnavailable);
  });

  test('says what went wrong and never the password', async () => {
    const options = prepare({ ...basic, password: 'canary-4713' });
    const said = await run(options, hurriedClock()).catch((error: Error) => error.message);
    expect(said).toMatch(/^the push failed: .*(?:unauthorized|authentication)/);
    expect(said).not.toContain('canary-4713');
  });
});

/** Passes everything on to the registry but the first answers to writes. */
async function proxy(faults: ((response: ServerResponse) => void)[]) {
  const forward = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const { host: _host, connection: _connection, ...headers } = incoming.headers;
    const {
      statusCode,
      headers: answered,
      body,
    } = await request(`http://${basic.host}${incoming.url}`, {
      method: incoming.method as 'GET',
      headers: headers as Record<string, string>,
      body: incoming,
    });
    // Absolute addresses of the registry would lead past this proxy.
    const location = answered.location && String(answered.location).replace(basic.host, server.host);
    outgoing.writeHead(statusCode, { ...answered, ...(location ? { location } : {}) } as Record<string, string>);
    body.pipe(outgoing);
  };
  const server = await listen((incoming, outgoing) => {
    const fault = incoming.method === 'POST' ? faults.shift() : undefined;
    if (fault) fault(outgoing);
    else forward(incoming, outgoing).catch(() => outgoing.destroy());
  });
  return server;
}

describe('a registry with a bad moment', () => {
  test.each<[string, number, (response: ServerResponse) => void]>([
    ['503', 3, (response) => response.writeHead(503).end()],
    ['a cut connection', 3, (response) => response.destroy()],
    // skopeo itself waits two seconds and asks again.
    [
      '429',
      1,
      (response) => response.writeHead(429).end('{"errors":[{"code":"TOOMANYREQUESTS","message":"slow down"}]}'),
    ],
  ])('gets the image at one of the next tries: %s', async (_name, times, fault) => {
    const server = await proxy(Array(times).fill(fault));
    try {
      const result = await run(prepare({ ...basic, host: server.host }), hurriedClock());
      expect(await clientOf(basic).has('team/pdf', result.digest, signal)).toBe(true);
    } finally {
      await server.close();
    }
  });
});

describe('the program', () => {
  const argv = (options: PushOptions) => [
    'push',
    `--layout=${options.layout}`,
    `--work=${options.work}`,
    `--image=${options.image}`,
    `--max-bytes=${options.maxBytes}`,
    `--result=${options.result}`,
    `--credential=${options.credential}`,
    '--insecure',
  ];

  test('ends with 0 and leaves the result', async () => {
    const options = prepare();
    const { code, stdout } = await runJob(argv(options));
    expect(code).toBe(0);
    const { digest, size } = parseResult(readFileSync(options.result, 'utf8')) ?? {};
    expect(stdout).toBe(`pushed ${options.image}@${digest}, ${size} bytes\n`);
  });

  test('ends with the code of its failure and one line that says why', async () => {
    const { code, stderr } = await runJob(argv(prepare({ ...basic, password: 'canary-4714' })));
    expect(code).toBe(EXIT.PushDenied);
    expect(stderr).toMatch(/^error: the push failed: [^\n]+\n$/);
    expect(stderr).not.toContain('canary-4714');
  });

  test('ends when it is told to, even while the registry is silent', async () => {
    let kill: ((name: NodeJS.Signals) => void) | undefined;
    const server = await listen(() => kill?.('SIGTERM'));
    try {
      const done = runJob(argv(prepare({ ...basic, host: server.host })), (stop) => {
        kill = stop;
      });
      expect(await done).toMatchObject({ code: EXIT.Stopped, stderr: 'error: told to stop\n' });
    } finally {
      await server.close();
    }
  });

  test('names the argument that is wrong', async () => {
    expect(await runJob(['push'])).toMatchObject({
      code: EXIT.Usage,
      stderr: 'error: --layout is missing; see --help\n',
    });
  });
});

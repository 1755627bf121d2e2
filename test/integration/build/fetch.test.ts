import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { type Clock, systemClock } from '../../../src/base/clock.ts';
import { EXIT } from '../../../src/build/exits.ts';
import { type FetchOptions, fetchContext } from '../../../src/jobs/fetch.ts';
import { type TarEntry, writeTar } from '../../../src/store/tar.ts';
import { eventually } from '../../support/eventually.ts';
import { listen } from '../../support/listen.ts';
import { makeBucket, s3Client } from '../../support/s3.ts';
import { runJob } from './run-job.ts';

const signal = new AbortController().signal;
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
const COMPARE = 'diff';
const DOCKERFILE = Buffer.from('FROM scratch\nCOPY . /skill\n');

/** Pauses take no time; their lengths are kept. */
function hurriedClock(): Clock & { pauses: number[] } {
  const pauses: number[] = [];
  return { ...systemClock, pauses, sleep: async (ms) => void pauses.push(ms) };
}

let root: string;
let bucket: string;

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'fetch-test-'));
  bucket = await makeBucket(inject('cluster').s3);
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

const entry = (path: string, text: string, mode: TarEntry['mode'] = '0644'): TarEntry => ({
  path,
  mode,
  content: Buffer.from(text),
});
const PACKAGE = Buffer.from(
  writeTar([
    entry('SKILL.md', 'hello'),
    entry('scripts/run.sh', '#!/bin/sh\n', '0755'),
    entry('.dockerignore', '*.tmp'),
  ]).tar,
);

async function store(bytes: Buffer, seconds: number): Promise<string> {
  const key = `${sha256(bytes).slice(0, 8)}-${Math.random().toString(36).slice(2)}`;
  const client = s3Client(inject('cluster').s3);
  await client.putObject(bucket, key, bytes);
  return await client.presignedGetObject(bucket, key, seconds);
}

interface Given {
  tar?: Buffer;
  dockerfile?: Buffer;
  urls?: { tar?: string; dockerfile?: string };
  seconds?: number;
}

/** Stores a package, signs its URLs and lays everything out as in the pod. */
async function prepare({
  tar = PACKAGE,
  dockerfile = DOCKERFILE,
  urls = {},
  seconds = 60,
}: Given = {}): Promise<FetchOptions> {
  const dir = mkdtempSync(join(root, 'pod-'));
  for (const name of ['urls', 'context', 'dockerfile']) mkdirSync(join(dir, name));
  writeFileSync(join(dir, 'urls', 'package.tar'), urls.tar ?? (await store(tar, seconds)));
  writeFileSync(join(dir, 'urls', 'Dockerfile'), urls.dockerfile ?? (await store(dockerfile, seconds)));
  return {
    urls: join(dir, 'urls'),
    context: join(dir, 'context'),
    dockerfile: join(dir, 'dockerfile', 'Dockerfile'),
    tar: { sha256: sha256(tar), size: tar.length },
    dockerfileSource: { sha256: sha256(dockerfile), size: dockerfile.length },
    network: {},
  };
}

const rejects = (options: FetchOptions, exitCode: number, clock: Clock = hurriedClock()) =>
  expect(fetchContext(options, clock, signal)).rejects.toMatchObject({ name: 'JobError', exitCode });

const modesOf = ({ context }: FetchOptions): string[] =>
  ['SKILL.md', 'scripts', 'scripts/run.sh'].map((path) => (statSync(join(context, path)).mode & 0o7777).toString(8));

describe('fetchContext', () => {
  test('writes the context with its modes and the Dockerfile beside it', async () => {
    const options = await prepare();
    expect(await fetchContext(options, systemClock, signal)).toBe(3);
    const files = readdirSync(options.context, { recursive: true }).map(String).sort();
    expect(files).toEqual(['.dockerignore', 'SKILL.md', 'scripts', 'scripts/run.sh']);
    expect(readFileSync(join(options.context, 'SKILL.md'), 'utf8')).toBe('hello');
    expect(readFileSync(options.dockerfile)).toEqual(DOCKERFILE);
    expect(modesOf(options)).toEqual(['644', '755', '755']);
  });

  test('writes what another tar reads from the same archive', async () => {
    const long = `${'d'.repeat(150)}/${'ü'.repeat(50)}`;
    const options = await prepare({ tar: Buffer.from(writeTar([entry('SKILL.md', ''), entry(long, 'x')]).tar) });
    await fetchContext(options, systemClock, signal);
    const other = mkdtempSync(join(root, 'tar-'));
    execFileSync('tar', ['-xf', '-', '-C', other], {
      input: Buffer.from(writeTar([entry('SKILL.md', ''), entry(long, 'x')]).tar),
    });
    execFileSync(COMPARE, ['-r', '--', options.context, other]);
  });

  test('is refused when the URL is over, so that the next attempt gets a new one', async () => {
    const options = await prepare({ seconds: 1 });
    const url = readFileSync(join(options.urls, 'package.tar'), 'utf8');
    await eventually(async () => (await fetch(url)).status !== 200, { what: 'the end of the URL' });
    const clock = hurriedClock();
    await rejects(options, EXIT.ContextRefused, clock);
    expect(clock.pauses).toEqual([]);
  });

  test('is refused when the object is gone', async () => {
    const gone = await s3Client(inject('cluster').s3).presignedGetObject(bucket, 'nothing-here', 60);
    await rejects(await prepare({ urls: { dockerfile: gone } }), EXIT.ContextRefused);
  });

  test('is refused when the signature was touched', async () => {
    const url = await store(PACKAGE, 60);
    await rejects(
      await prepare({ urls: { tar: url.replace(/Signature=..../, 'Signature=0000') } }),
      EXIT.ContextRefused,
    );
  });

  test.each<[string, (options: FetchOptions) => void]>([
    [
      'a tar of other bytes',
      (options) => {
        options.tar.sha256 = '0'.repeat(64);
      },
    ],
    [
      'a Dockerfile of other bytes',
      (options) => {
        options.dockerfileSource.sha256 = '0'.repeat(64);
      },
    ],
    [
      'a tar that is longer',
      (options) => {
        options.tar.size -= 1;
      },
    ],
    [
      'a tar above every limit',
      (options) => {
        options.tar.size = 1e9;
      },
    ],
    [
      'a Dockerfile above its limit',
      (options) => {
        options.dockerfileSource.size = 300_000;
      },
    ],
  ])('refuses %s', async (_name, change) => {
    const options = await prepare();
    change(options);
    await rejects(options, EXIT.ContextCorrupt);
    expect(readdirSync(options.context)).toEqual([]);
    expect(existsSync(options.dockerfile)).toBe(false);
  });

  test('refuses a private file in the archive', async () => {
    await rejects(await prepare({ tar: Buffer.from(writeTar([entry('.skillenv', 'A=1')]).tar) }), EXIT.ContextCorrupt);
  });

  test('refuses an archive whose files stand in each other’s way', async () => {
    const tar = Buffer.from(writeTar([entry('a', 'file'), entry('a/b', 'below it')]).tar);
    await rejects(await prepare({ tar }), EXIT.ContextCorrupt);
  });

  test('tries again where the server fails, and takes the answer', async () => {
    const answers = [503, 500, 429, 200];
    const server = await listen((_, response) => response.writeHead(answers.shift() ?? 500).end(DOCKERFILE));
    try {
      const clock = hurriedClock();
      const options = await prepare({ urls: { dockerfile: `http://${server.host}/d` } });
      await fetchContext(options, clock, signal);
      expect(clock.pauses).toEqual([1000, 4000, 16_000]);
    } finally {
      await server.close();
    }
  });

  test('gives up when the store stays down, and says neither signature nor password', async () => {
    const server = await listen(() => undefined);
    await server.close();
    const options = await prepare({ urls: { dockerfile: `http://${server.host}/d?X-Amz-Signature=canary-4715` } });
    const said = await fetchContext(options, hurriedClock(), signal).catch((error: Error) => error);
    expect(said).toMatchObject({ exitCode: EXIT.ContextUnreachable });
    expect(String(said)).toBe('JobError: the Dockerfile could not be downloaded: ECONNREFUSED');
  });

  test('stops reading when more comes than was stored', async () => {
    let sent = 0;
    const server = await listen((_, response) => {
      const more = () => {
        while (sent++ < 1000 && response.write(Buffer.alloc(1024 * 1024)));
        if (sent >= 1000) response.end();
      };
      response.on('drain', more);
      more();
    });
    try {
      await rejects(await prepare({ urls: { dockerfile: `http://${server.host}/d` } }), EXIT.ContextCorrupt);
      expect(sent).toBeLessThan(100);
    } finally {
      await server.close();
    }
  });

  test('does not follow a redirect', async () => {
    const server = await listen((_, response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end());
    try {
      await rejects(await prepare({ urls: { dockerfile: `http://${server.host}/d` } }), EXIT.ContextUnreachable);
    } finally {
      await server.close();
    }
  });

  test.each(['file:///etc/passwd', 'not a url', ''])('refuses %j as a URL', async (url) => {
    const options = await prepare();
    writeFileSync(join(options.urls, 'package.tar'), url);
    await rejects(options, EXIT.Usage);
  });

  test('goes through the proxy that it is given', async () => {
    const seen: string[] = [];
    const proxy = await listen((request, response) => {
      seen.push(request.url ?? '');
      response.end(DOCKERFILE);
    });
    try {
      const options = await prepare({ urls: { dockerfile: 'http://store.example.com/d' } });
      const noProxy = new URL(inject('cluster').s3.endpoint).hostname;
      await fetchContext({ ...options, network: { httpProxy: `http://${proxy.host}`, noProxy } }, systemClock, signal);
      expect(seen).toEqual(['http://store.example.com/d']);
    } finally {
      await proxy.close();
    }
  });
});

describe('the program', () => {
  const argv = (options: FetchOptions) => [
    'fetch',
    `--urls=${options.urls}`,
    `--context=${options.context}`,
    `--dockerfile=${options.dockerfile}`,
    `--tar-sha256=${options.tar.sha256}`,
    `--tar-size=${options.tar.size}`,
    `--dockerfile-sha256=${options.dockerfileSource.sha256}`,
    `--dockerfile-size=${options.dockerfileSource.size}`,
  ];

  test('ends with 0 and the number of files, whose modes no umask changes', async () => {
    const options = await prepare();
    expect(await runJob(argv(options))).toEqual({ code: 0, stdout: 'fetched 3 files\n', stderr: '' });
    expect(modesOf(options)).toEqual(['644', '755', '755']);
  });

  test('ends with the code of its failure and one line that says why', async () => {
    const options = await prepare();
    options.tar.sha256 = '0'.repeat(64);
    const { code, stderr } = await runJob(argv(options));
    expect(code).toBe(EXIT.ContextCorrupt);
    expect(stderr).toBe('error: package.tar has another sha256 than the one that was stored\n');
  });
});

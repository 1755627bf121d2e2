import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inject, onTestFinished } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { PolicyError } from '../../../src/base/errors.ts';
import { silentLogger } from '../../../src/base/log.ts';
import type { GitLimits } from '../../../src/marketplace/limits.ts';
import type { GitCredential, Remote, TreeReader } from '../../../src/marketplace/port.ts';
import { GitTreeSource, type GitTreeSourceOptions } from '../../../src/marketplace/tree-source.ts';
import { createRepository, type TestRepository, type TestTree } from '../../support/git.ts';

/** A signal that a test never aborts. */
export const NEVER = new AbortController().signal;

/** A private directory that goes with the test. */
export async function temporary(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'marketplace-test-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

/** A source with its own directory and counters. */
export async function newSource(
  limits: Partial<GitLimits> = {},
  connection: Pick<GitTreeSourceOptions, 'proxies' | 'authorities'> = {},
) {
  const dir = await temporary();
  const counts = { 'ls-remote': 0, fetch: 0 };
  const source = new GitTreeSource({
    dir,
    clock: systemClock,
    log: silentLogger,
    limits,
    ...connection,
    observe: ({ name }, fn) => {
      counts[name as keyof typeof counts] += 1;
      return fn();
    },
  });
  onTestFinished(() => source.close());
  return { source, dir, counts };
}

/** An empty repository on the test cluster's Git server, under a name of its own. */
export async function newRepository(): Promise<TestRepository> {
  return createRepository(inject('cluster').git.root, `mp-${randomBytes(6).toString('hex')}`);
}

/** The remote of a repository below one of the server's base addresses. */
export const remoteAt = (
  base: string,
  repository: Pick<TestRepository, 'name'>,
  credential?: GitCredential,
): Remote => ({
  url: `${base}/${repository.name}.git`,
  credential,
  timeoutMs: 20_000,
});

/** The remote without credentials. */
export const publicRemote = (repository: Pick<TestRepository, 'name'>): Remote =>
  remoteAt(inject('cluster').git.httpUrl, repository);

/** The PolicyError that a promise rejects with, as `Policy Reason: message`; ports and ids masked. */
export async function failure(work: Promise<unknown>): Promise<string> {
  try {
    await work;
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error;
    return `${error.policy} ${error.reason}: ${error.message}`
      .replaceAll(/127\.0\.0\.1:\d+/g, '127.0.0.1:<port>')
      .replaceAll(/-p \d+/g, '-p <port>')
      .replaceAll(/\b[0-9a-f]{40}\b/g, '<id>')
      .replaceAll(/SHA256:[A-Za-z0-9+/]{43}/g, '<fingerprint>');
  }
  throw new Error('it did not fail');
}

/** Command lines of all processes whose arguments contain the text. */
export function processesWith(text: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes(text)
          ? [readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ')]
          : [];
      } catch {
        return [];
      }
    });
}

/** Every file below a directory, relative, sorted. */
export function filesBelow(dir: string): string[] {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(dir.length + 1))
    .sort();
}

/** Ids of the Git processes whose environment contains the text and whose command line names the command. */
export function gitProcesses(environment: string, command: string): number[] {
  const holds = (pid: string) => {
    try {
      const environ = readFileSync(`/proc/${pid}/environ`, 'latin1');
      return environ.includes(environment) && readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes(command);
    } catch {
      return false;
    }
  };
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && holds(name))
    .map(Number);
}

/** Ids of the object readers on the mirrors below a directory. */
export const catFilesOf = (dir: string): number[] => gitProcesses(`GIT_OBJECT_DIRECTORY=${dir}`, 'cat-file');

/** Tree of a repository with one skill of this name. */
export const skill = (name: string, text = 'body'): TestTree => ({
  [`plugins/docs/skills/${name}/SKILL.md`]: `---\nname: ${name}\ndescription: A test skill\n---\n${text}\n`,
});

/** Text of one file of a directory; undefined where either is not there. */
export async function text(reader: TreeReader, directory: string, name: string): Promise<string | undefined> {
  const tree = await reader.tree(directory, NEVER);
  const entry = tree?.entries.find((candidate) => candidate.name === name);
  const blob = entry && (await reader.blob(entry.oid, 1_000_000, NEVER));
  return blob?.content && Buffer.from(blob.content).toString('utf8');
}

/** The mirrors below a directory. */
export const mirrorsIn = (dir: string) => readdirSync(dir).filter((name) => name !== 'home');

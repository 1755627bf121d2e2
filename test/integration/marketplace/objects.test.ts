import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { localEnvironment } from '../../../src/marketplace/environment.ts';
import { Objects, type ObjectsOptions } from '../../../src/marketplace/objects.ts';
import { eventually } from '../../support/eventually.ts';
import { failure, NEVER, newRepository, temporary } from './support.ts';

async function reader(options: Partial<ObjectsOptions> = {}) {
  const repository = await newRepository();
  const commit = await repository.commit(
    Object.fromEntries(Array.from({ length: 2_000 }, (_, at) => [`d/${at}`, `content ${at}\n${'\0'.repeat(at % 7)}`])),
  );
  const tree = await repository.objectAt(commit, 'd');
  const env = { ...localEnvironment('/nonexistent'), GIT_DIR: repository.path };
  const objects = new Objects({ gitPath: 'git', env, cwd: repository.path, clock: systemClock, ...options });
  onTestFinished(() => objects.close());
  return { repository, commit, tree, objects };
}

/** A program that stands in for git and misbehaves. */
async function program(script: string): Promise<string> {
  const path = join(await temporary(), 'git');
  await writeFile(path, `#!/bin/sh\n${script}\n`);
  await chmod(path, 0o755);
  return path;
}

describe('Objects', () => {
  test('answers thousands of mixed questions in order through one process', async () => {
    const { objects, commit, tree, repository } = await reader();
    const oids = await Promise.all(['0', '3', '6', '1999'].map((name) => repository.objectAt(commit, `d/${name}`)));
    const asked = Array.from({ length: 4_000 }, (_, at) => oids[at % 4] ?? '');
    const answers = await Promise.all(
      asked.map((oid, at) => (at % 3 ? objects.contents(oid, NEVER) : objects.info(oid, NEVER))),
    );
    const pid = objects.pid;
    for (const [at, answer] of answers.entries()) {
      const name = ['0', '3', '6', '1999'][at % 4];
      const text = `content ${name}\n${'\0'.repeat(Number(name) % 7)}`;
      expect(answer).toMatchObject({ type: 'blob', size: text.length });
      if (answer && 'content' in answer) expect(answer.content?.toString()).toBe(text);
    }
    expect(await objects.info(tree, NEVER)).toMatchObject({ type: 'tree' });
    expect((await objects.contents(`${commit}^{tree}`, NEVER))?.type).toBe('tree');
    expect(await objects.info('0'.repeat(40), NEVER)).toBeUndefined();
    expect(objects.pid).toBe(pid);
  });

  test('asks again when the process is killed in the middle', async () => {
    const { objects, commit, repository } = await reader();
    const oid = await repository.objectAt(commit, 'd/5');
    await objects.info(oid, NEVER);
    const before = objects.pid ?? 0;
    const answers = Array.from({ length: 3_000 }, () => objects.contents(oid, NEVER));
    process.kill(before, 'SIGKILL');
    const texts = (await Promise.all(answers)).map((answer) => answer?.content?.toString());
    expect(new Set(texts)).toEqual(new Set([`content 5\n${'\0'.repeat(5)}`]));
    expect(objects.pid).not.toBe(before);
  });

  test('a caller that leaves does not disturb the others', async () => {
    const { objects, commit, repository } = await reader();
    const [first, second] = await Promise.all(['1', '2'].map((name) => repository.objectAt(commit, `d/${name}`)));
    const controller = new AbortController();
    const left = objects.contents(first ?? '', controller.signal);
    const stays = objects.contents(second ?? '', NEVER);
    controller.abort(new Error('left'));
    await expect(left).rejects.toThrow('left');
    expect((await stays)?.content?.toString()).toBe('content 2\n\0\0');
  });

  test('ends when idle and starts again', async () => {
    const { objects, commit } = await reader({ idleMs: 20 });
    await objects.info(commit, NEVER);
    await eventually(() => objects.pid === undefined, { what: 'end of the idle process' });
    expect(await objects.info(commit, NEVER)).toMatchObject({ type: 'commit' });
  });

  test('a process that stops answering is killed, tried once more, and named', async () => {
    const gitPath = await program('exec sleep 600');
    const { objects, commit } = await reader({ gitPath, stallMs: 50 });
    expect(await failure(objects.info(commit, NEVER))).toMatchInlineSnapshot(
      `"Retry MirrorCorrupt: objects of the local mirror cannot be read (git cat-file stopped answering): the operator fetches them anew by itself"`,
    );
    expect(objects.pid).toBeUndefined();
  });

  test('a process that fails at once or talks nonsense is named', async () => {
    const fails = await reader({ gitPath: await program('echo "fatal: bad repository" >&2; exit 128') });
    expect(await failure(fails.objects.info(fails.commit, NEVER))).toMatchInlineSnapshot(
      `"Retry MirrorCorrupt: objects of the local mirror cannot be read (fatal: bad repository): the operator fetches them anew by itself"`,
    );
    const babbles = await reader({ gitPath: await program('cat >/dev/null & echo hello; wait') });
    expect(await failure(babbles.objects.info(babbles.commit, NEVER))).toContain('git cat-file printed "hello"');
    const absent = await reader({ gitPath: '/nonexistent/git' });
    expect(await failure(absent.objects.info(absent.commit, NEVER))).toContain('ENOENT');
  });

  test('takes nothing but object ids, and nothing after it was closed', async () => {
    const { objects, commit } = await reader();
    for (const revision of [
      'HEAD',
      `${commit}\ninfo ${commit}`,
      `${commit}:d`,
      '--batch-all-objects',
      commit.toUpperCase(),
    ]) {
      expect(await failure(objects.info(revision, NEVER))).toContain('is no object id');
    }
    const open = failure(objects.info(commit, NEVER));
    objects.close();
    expect(await open).toContain('the reader was closed');
    expect(await failure(objects.info(commit, NEVER))).toContain('the reader was closed');
  });
});

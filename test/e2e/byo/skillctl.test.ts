import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { skillctl } from '../../integration/cli/helpers.ts';
import { type ByoStage, openByoStage } from '../../support/byo/stage.ts';
import { isReady } from '../../support/market.ts';

const { node, ...info } = inject('cluster');

describe.skipIf(!node)('skillctl and a build on a node', () => {
  if (!node) return;
  let stage: ByoStage;
  beforeAll(async () => {
    stage = await openByoStage(info, node);
  });
  afterAll(() => stage?.[Symbol.asyncDispose]());

  const run = (...args: string[]) => {
    const { operator, builds } = stage;
    const flags = ['--kubeconfig', info.kubeconfig, '-n', operator.namespace];
    return skillctl('/', ...args, ...flags, ...(args[0] === 'logs' ? ['--build-namespace', builds] : []));
  };

  test('follows the log of a build, tells its outcome, and builds again', async () => {
    // The escape sequence is what a hostile author would try.
    const dockerfile = stage.from("RUN echo first-line && sleep 2 && printf 'second\\033[2J-line\\n'");
    await stage.market('team', { logged: stage.skill('e2b', 'logged', dockerfile) });
    await stage.until('team.p.logged', 'a candidate', (object) => object.status?.candidate !== undefined);
    const followed = await run('logs', '--build', 'logged', '--timeout', '3m');
    expect(followed.code, followed.err).toBe(0);
    expect(followed.out).toMatch(/^build first-line$[\s\S]*^build second-line$/m);
    expect(followed.err).toContain('the image is built and pushed');
    await stage.until('team.p.logged', 'Ready', isReady);
    const trace = await run('trace', 'logged');
    expect([trace.code, trace.out]).toEqual([0, expect.stringMatching(/✓ build +\S+@sha256:/)]);
    const again = await run('rebuild', 'logged', '--wait', '--timeout', '4m');
    expect(again.code, again.err).toBe(0);
    expect(again.out).toMatch(/^Skill team\.p\.logged in \S+ was rebuilt, serves [0-9a-f]{12}\n {2}Ready: /);
    expect((await run('logs', 'logged', '--no-follow', '-o', 'json')).out).toContain('"line":"first-line"');
  });
});

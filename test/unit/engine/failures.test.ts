import { describe, expect, it } from 'vitest';
import { buildFailure, withBuildDeadline } from '../../../src/engine/failures.ts';

describe('buildFailure', () => {
  it.each([
    ['e2b', 'image architecture "arm64" does not match expected "amd64"', 'EngineBuildFailed', 'Stalled'],
    ['e2b', 'unsupported distribution: distroless', 'EngineBuildFailed', 'Stalled'],
    ['cubesandbox', 'cube egress CA file not found', 'EngineConfigInvalid', 'Waiting'],
    ['cubesandbox', 'rpc error: code = Unimplemented desc = unknown service images', 'EngineBuildFailed', 'Stalled'],
    ['cubesandbox', 'mkfs.ext4: no space left on device', 'EngineOutOfSpace', 'Waiting'],
    ['e2b', "failed to pull 'x': access denied", 'EngineImagePullFailed', 'Retry'],
    ['cubesandbox', 'GET manifest: 401 Unauthorized', 'EngineImagePullFailed', 'Retry'],
    ['cubesandbox', 'readiness probe failed on :49983/health', 'EngineBuildFailed', 'Stalled'],
    ['e2b', 'ready command failed', 'EngineBuildFailed', 'Stalled'],
    ['e2b', 'build status polling timed out. Maximum build time is 1h0m0s.', 'EngineBuildFailed', 'Retry'],
    ['cubesandbox', 'context deadline exceeded', 'EngineBuildFailed', 'Retry'],
    ['e2b', 'something new', 'EngineBuildFailed', 'Retry'],
    ['e2b', '', 'EngineBuildFailed', 'Retry'],
  ] as const)('of %s: %j is %s, %s', (engine, text, reason, policy) => {
    expect(buildFailure(engine, { text })).toMatchObject({ reason, policy });
  });

  it('says what failed, where, and what to do', () => {
    expect(
      buildFailure('e2b', { step: 'base', text: "failed to pull 'x': access denied." }).message,
    ).toMatchInlineSnapshot(
      `"E2B could not make the template at step base: failed to pull 'x': access denied. Check that the engine reaches the registry and that its registry pull Secret may read this repository."`,
    );
    expect(buildFailure('cubesandbox', { text: 'probe failed' }).message).toMatchInlineSnapshot(
      `"CubeSandbox could not make the template: probe failed. The image must start envd and answer on port 49983: build FROM a cubesandbox base, or copy envd and its entry point from one."`,
    );
    expect(buildFailure('e2b', { text: '' }).message).toMatchInlineSnapshot(
      `"E2B could not make the template: the engine gives no cause. It is tried a few times; the log tail shows the end of the build."`,
    );
  });
});

describe('withBuildDeadline', () => {
  const times = { startedAt: 0, now: 60_001, deadlineMs: 60_000 };

  it('ends what is under way too long', () => {
    const late = withBuildDeadline('cubesandbox', { phase: 'Building' }, times);
    expect(late).toMatchInlineSnapshot(`
      {
        "failure": {
          "logTail": "",
          "message": "CubeSandbox has not finished the template within 1 minutes. It is tried again; if it stays, look for a stuck build at the engine.",
          "policy": "Retry",
          "reason": "EngineStuck",
        },
        "phase": "Failed",
      }
    `);
    expect(withBuildDeadline('e2b', { phase: 'Allocated' }, times).phase).toBe('Failed');
  });

  it.each([
    [{ phase: 'Building' }, { ...times, now: 60_000 }],
    [{ phase: 'Ready' }, times],
    [{ phase: 'Degraded', message: 'm' }, times],
    [{ phase: 'Absent', message: 'm' }, times],
  ] as const)('leaves %j alone', (state, at) => {
    expect(withBuildDeadline('e2b', state, at)).toBe(state);
  });
});

import type { Policy } from '../base/errors.ts';
import type { Reason } from '../base/reasons.ts';
import type { Engine } from '../protocol/types.ts';
import { ENGINE_LABEL, logTail, tidy } from './errors.ts';
import type { BuildFailure, TemplateState } from './port.ts';

interface FailureClass {
  engine?: Engine;
  match: RegExp;
  reason: Reason;
  policy: Policy;
  next: string;
}

/**
 * Ordered: the first match wins. `Stalled` needs another image or spec, `Waiting` a change outside, `Retry` heals by itself.
 * Source: the failures that users of both engines report, by the words the engines use.
 */
const CLASSES: FailureClass[] = [
  {
    match: /architecture .* does not match|exec format error/i,
    reason: 'EngineBuildFailed',
    policy: 'Stalled',
    next: "Build the image for the engine's architecture.",
  },
  {
    engine: 'e2b',
    match: /unsupported (?:distro|distribution|os)|os-release/i,
    reason: 'EngineBuildFailed',
    policy: 'Stalled',
    next: 'Start the Dockerfile from Debian, Ubuntu, Fedora, CentOS, Rocky, AlmaLinux, Arch, Alpine or NixOS.',
  },
  {
    engine: 'cubesandbox',
    match: /\bca\b.*(?:not found|missing|no such file)|cube-?egress.*\bca\b/i,
    reason: 'EngineConfigInvalid',
    policy: 'Waiting',
    next: "Install the engine's egress CA, or switch off withCubeCA for this engine in the operator configuration.",
  },
  {
    match: /unimplemented/i,
    reason: 'EngineBuildFailed',
    policy: 'Stalled',
    next: 'The components of the engine have different versions; upgrade them together.',
  },
  {
    match: /no space left|mkfs|disk (?:is )?full|insufficient (?:disk|storage)/i,
    reason: 'EngineOutOfSpace',
    policy: 'Waiting',
    next: 'Free disk space on the engine, or make the image smaller.',
  },
  {
    match:
      /unauthorized|access denied|authentication required|manifest unknown|pull access|failed to pull|\b40[134]\b/i,
    reason: 'EngineImagePullFailed',
    policy: 'Retry',
    next: 'Check that the engine reaches the registry and that its registry pull Secret may read this repository.',
  },
  {
    engine: 'cubesandbox',
    match: /probe|49983|envd|health/i,
    reason: 'EngineBuildFailed',
    policy: 'Stalled',
    next: 'The image must start envd and answer on port 49983: build FROM a cubesandbox base, or copy envd and its entry point from one.',
  },
  {
    engine: 'e2b',
    match: /(?:ready|start) ?(?:cmd|command)/i,
    reason: 'EngineBuildFailed',
    policy: 'Stalled',
    next: 'Check the start and ready command of this engine in the operator configuration against the image.',
  },
  {
    match: /timed? ?out|deadline exceeded|too long|connection (?:reset|refused)|temporar|unavailable|try again/i,
    reason: 'EngineBuildFailed',
    policy: 'Retry',
    next: 'It is tried again by itself.',
  },
];

const FALLBACK = {
  reason: 'EngineBuildFailed',
  policy: 'Retry',
  next: 'It is tried a few times; the log tail shows the end of the build.',
} as const satisfies Pick<FailureClass, 'reason' | 'policy' | 'next'>;

/** Turns the engine's words about a failed template build into reason, policy and a message with the next step. */
export function buildFailure(
  engine: Engine,
  failure: { step?: string | undefined; text: string; lines?: readonly string[] },
): BuildFailure {
  const text = tidy(failure.text, 400) || 'the engine gives no cause';
  const found = CLASSES.find((c) => (c.engine ?? engine) === engine && c.match.test(failure.text)) ?? FALLBACK;
  const step = failure.step ? ` at step ${tidy(failure.step, 60)}` : '';
  return {
    reason: found.reason,
    policy: found.policy,
    message: `${ENGINE_LABEL[engine]} could not make the template${step}: ${text.replace(/[.\s]+$/, '')}. ${found.next}`,
    logTail: logTail(failure.lines ?? []),
  };
}

/**
 * A build that runs past its deadline is Failed(EngineStuck): neither engine can cancel a build, and some never end.
 * Times in milliseconds of one clock; states that are not under way pass unchanged.
 */
export function withBuildDeadline(
  engine: Engine,
  state: TemplateState,
  times: { startedAt: number; now: number; deadlineMs: number },
): TemplateState {
  const underWay = state.phase === 'Allocated' || state.phase === 'Building';
  if (!underWay || times.now - times.startedAt <= times.deadlineMs) return state;
  const minutes = Math.round(times.deadlineMs / 60_000);
  return {
    phase: 'Failed',
    failure: {
      reason: 'EngineStuck',
      policy: 'Retry',
      message: `${ENGINE_LABEL[engine]} has not finished the template within ${minutes} minutes. It is tried again; if it stays, look for a stuck build at the engine.`,
      logTail: '',
    },
  };
}

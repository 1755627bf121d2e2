import type { Findings, Position } from './findings.ts';
import { DOCKERFILES, SKILL_MD, SKILLENV } from './names.ts';
import { nearest, show } from './text.ts';
import type { Engine, Runtime, Tier } from './types.ts';
import { RUNTIMES } from './types.ts';

/** What a runtime means: its tier, the engine that runs it, the Dockerfile that it requires (§6.1, §6.2). */
export interface RuntimeInfo {
  tier: Tier;
  engine?: Engine;
  /** Name of the file at the skill's root. */
  dockerfile?: string;
}

/** The seven runtimes. */
export const RUNTIME_INFO: Readonly<Record<Runtime, RuntimeInfo>> = {
  'prompt-only': { tier: 0 },
  'cubesandbox::python': { tier: 1, engine: 'cubesandbox' },
  'cubesandbox::node': { tier: 1, engine: 'cubesandbox' },
  'e2b::python': { tier: 1, engine: 'e2b' },
  'e2b::node': { tier: 1, engine: 'e2b' },
  cubesandbox: { tier: 2, engine: 'cubesandbox', dockerfile: DOCKERFILES.cubesandbox },
  e2b: { tier: 2, engine: 'e2b', dockerfile: DOCKERFILES.e2b },
};

/** True for one of the seven values. */
export const isRuntime = (value: string): value is Runtime => (RUNTIMES as readonly string[]).includes(value);

/** Names that other systems use for an environment; here the author's own Dockerfile makes it (A3 §5). */
const OWN_IMAGE = /^(?:shell|bash|sh|zsh|mcp-server|docker|firecracker|daytona|(?:python|node)[-:].*)$/;
const LANGUAGE: Readonly<Record<string, string>> = {
  python: 'python',
  python3: 'python',
  node: 'node',
  nodejs: 'node',
  javascript: 'node',
  typescript: 'node',
};

/** What to type instead of an unknown runtime. */
export function runtimeHint(value: string): string {
  const plain = value.trim().toLowerCase();
  if (OWN_IMAGE.test(plain)) return 'use cubesandbox or e2b with your own Dockerfile';
  const language = Object.hasOwn(LANGUAGE, plain) ? LANGUAGE[plain] : undefined;
  if (language) return `write runtime: cubesandbox::${language} or runtime: e2b::${language}`;
  if (/^(?:none|no|false|prompt|default|null)$/.test(plain))
    return 'write runtime: prompt-only, or leave the field out';
  const near = nearest(plain.replace(/^([a-z0-9]+):([a-z]+)$/, '$1::$2'), RUNTIMES);
  return near
    ? `did you mean runtime: ${near}?`
    : 'write one of the seven values, or leave the field out for prompt-only';
}

/**
 * Checks that the root files fit the runtime (§6.2); `at` is where SKILL.md states the runtime, or its first line.
 * `present` holds the names of the root files; without a valid runtime only the rule about both Dockerfiles applies.
 */
export function checkRuntimeFiles(
  runtime: Runtime | undefined,
  present: ReadonlySet<string>,
  at: Omit<Position, 'path'>,
  out: Findings,
): void {
  const found = (Object.keys(DOCKERFILES) as Engine[]).filter((engine) => present.has(DOCKERFILES[engine]));
  if (found.length > 1) {
    const message = `found ${DOCKERFILES.cubesandbox} and ${DOCKERFILES.e2b}, a skill can have only one of them`;
    out.add(
      'DockerfilesBoth',
      { path: DOCKERFILES.e2b },
      message,
      'keep the Dockerfile of the runtime and delete the other',
    );
  }
  if (!runtime) return;
  const required = RUNTIME_INFO[runtime].dockerfile;
  if (required && !present.has(required)) noteMissing(runtime, required, present, at, out);
  if (!required) for (const engine of found) noteForbidden(runtime, engine, out);
  if (runtime === 'prompt-only' && present.has(SKILLENV)) {
    const hint = 'delete .skillenv, or choose a runtime with a sandbox such as runtime: cubesandbox::python';
    out.add('SkillenvForbidden', { path: SKILLENV }, 'runtime: prompt-only forbids .skillenv', hint);
  }
}

function noteMissing(
  runtime: Runtime,
  required: string,
  present: ReadonlySet<string>,
  at: Omit<Position, 'path'>,
  out: Findings,
): void {
  const other = Object.values(DOCKERFILES).find((name) => present.has(name));
  const rename = other ?? [...present].find((path) => /^dockerfile$/i.test(path));
  const hint = other
    ? `write runtime: ${otherEngine(runtime)}, or rename and adapt the file: git mv ${other} ${required}`
    : rename
      ? `rename the file: git mv ${rename} ${required}`
      : `add ${required} next to SKILL.md`;
  const message = `runtime: ${runtime} requires ${required}, found ${other ?? 'none'}`;
  out.add('DockerfileMissing', { path: SKILL_MD, ...at }, message, hint);
}

const otherEngine = (runtime: Runtime): Engine => (runtime === 'e2b' ? 'cubesandbox' : 'e2b');

function noteForbidden(runtime: Runtime, engine: Engine, out: Findings): void {
  const name = DOCKERFILES[engine];
  const message = `runtime: ${runtime} forbids ${name} (a Dockerfile needs runtime: ${engine})`;
  out.add('DockerfileForbidden', { path: name }, message, `write runtime: ${engine}, or delete ${name}`);
}

/** The message for a value that is none of the seven. */
export const runtimeMessage = (value: string): string =>
  `runtime "${show(value)}" is not one of ${RUNTIMES.join(', ')}`;

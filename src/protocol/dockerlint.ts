import {
  copySource,
  type Dockerfile,
  type Instruction,
  type Origin,
  parseDockerfile,
  type Stage,
} from './dockerfile.ts';
import { CUBE_BASE, isCubeBase, isDistroless, isScratch, isUnknownToE2B, unpinned } from './dockerimages.ts';
import { flagsAndOperands } from './dockerwords.ts';
import type { Findings } from './findings.ts';
import { show } from './text.ts';
import type { Engine } from './types.ts';

/** What the finished image is made of: the stages whose files it has, the stages whose settings it has, and the base under them. */
interface Result {
  file: Dockerfile;
  last: Stage;
  /** The last stage and what its files build on, youngest first. */
  content: Stage[];
  /** The stages whose ENTRYPOINT, CMD and USER it inherits, youngest first. */
  settings: Stage[];
  /** The image under its files; undefined when the file alone does not tell. */
  base?: string | undefined;
  /** The FROM that names the base. */
  baseLine: number;
  /** The image whose settings it inherits. */
  settingsBase?: string | undefined;
}

interface Copy {
  line: number;
  from?: Origin | undefined;
  sources: string[];
  target: string;
}

const ENVD = /(?:^|[^\w.-])(?:envd|cube-entrypoint\.sh)(?:$|[^\w-])/;
const COPY_ENVD = `COPY --from=${CUBE_BASE} /usr/bin/envd /usr/local/bin/cube-entrypoint.sh /usr/bin/`;
const START_ENVD = 'ENTRYPOINT ["/usr/bin/cube-entrypoint.sh"]';
const E2B_SYSTEMS = 'Debian, Ubuntu, Fedora, CentOS, Rocky Linux, AlmaLinux, Arch, Alpine or NixOS';
const ARCHIVE = /\.(?:tar(?:\.\w+)?|tgz|txz|tbz2)$/;

/**
 * Checks the Dockerfile of a bring-your-own image against what its engine does with the image.
 * `path` is the file's name at the root of the skill. Source: the contracts of both engines for images, docs/spec/skill-protocol.md.
 */
export function checkDockerfile(engine: Engine, path: string, bytes: Uint8Array, out: Findings): void {
  const text = new TextDecoder().decode(bytes);
  if (text.includes('\0')) {
    const line = text.slice(0, text.indexOf('\0')).split('\n').length;
    out.add('DockerfileInvalid', { path, line }, `${path} contains a NUL character`, 'save the file as UTF-8 text');
    return;
  }
  const file = parseDockerfile(text);
  for (const { line, message, hint } of file.problems) out.add('DockerfileInvalid', { path, line }, message, hint);
  const last = file.stages.at(-1);
  if (!last) {
    noteFromMissing(file, engine, path, out);
    return;
  }
  const result = resultOf(file, last);
  checkPins(file, path, out);
  if (engine === 'cubesandbox') checkCubeSandbox(result, path, out);
  else checkE2B(result, path, out);
}

function noteFromMissing({ empty }: Dockerfile, engine: Engine, path: string, out: Findings): void {
  const message = empty ? `${path} has no instruction` : `${path} has no FROM`;
  const base = engine === 'cubesandbox' ? CUBE_BASE : 'debian:12-slim';
  out.add('DockerfileFromMissing', { path, line: 1 }, message, `start with the base image: FROM ${base}`);
}

function checkPins({ stages }: Dockerfile, path: string, out: Findings): void {
  for (const { from, line } of stages) {
    if (from === 'unknown' || !('image' in from)) continue;
    const why = unpinned(from.image);
    if (!why || !out.hasRoom('DockerfileBaseUnpinned')) continue;
    const message = `the base image ${show(from.image)} ${why}, so that the next build may get another one`;
    const name = show(from.image.replace(/:[^:/]*$/, ''));
    const hint = `name a release or a digest: FROM ${name}:<version> or FROM ${name}@sha256:<digest>`;
    out.add('DockerfileBaseUnpinned', { path, line }, message, hint);
  }
}

/** Follows the last stage down to its base; origins only lead to earlier stages, so the walks end. */
function resultOf(file: Dockerfile, last: Stage): Result {
  const content = walk(last, (stage) => rootCopy(file, stage) ?? stage.from);
  const settings = walk(last, (stage) => stage.from);
  return {
    file,
    last,
    content: content.stages,
    settings: settings.stages,
    base: content.image,
    baseLine: content.stages.at(-1)?.line ?? last.line,
    settingsBase: settings.image,
  };
}

function walk(last: Stage, next: (stage: Stage) => Origin): { stages: Stage[]; image?: string | undefined } {
  const stages = [last];
  for (let stage = last; ; ) {
    const origin = next(stage);
    if (origin === 'unknown') return { stages };
    if ('image' in origin) return { stages, image: origin.image };
    stage = origin.stage;
    stages.push(stage);
  }
}

/** The stage or image whose whole root replaces the base, as `FROM scratch` + `COPY --from=build / /` does. */
function rootCopy(file: Dockerfile, stage: Stage): Origin | undefined {
  for (const copy of copies(file, stage).toReversed()) {
    if (copy.target !== '/') continue;
    if (copy.from && copy.sources.some((source) => /^\/\.?$/.test(source))) return copy.from;
    if (!copy.from && copy.sources.some((source) => ARCHIVE.test(source))) return 'unknown';
  }
  return undefined;
}

function copies(file: Dockerfile, stage: Stage): Copy[] {
  return stage.instructions
    .filter(({ keyword }) => keyword === 'COPY' || keyword === 'ADD')
    .map(({ args, line }) => {
      const { flags, operands } = flagsAndOperands(args);
      const from = flags.get('from');
      return {
        line,
        from: from === undefined ? undefined : copySource(file, stage, from),
        sources: operands.slice(0, -1),
        target: operands.at(-1) ?? '',
      };
    });
}

function checkCubeSandbox(result: Result, path: string, out: Findings): void {
  const base = result.base === undefined ? undefined : isCubeBase(result.base);
  if (base === undefined || base || bringsEnvd(result)) {
    checkStart(result, base === undefined, path, out);
    return;
  }
  const message = `the image has no envd, which must answer on port 49983: its base ${show(result.base ?? '')} is no image of CubeSandbox`;
  const hint = `add to the last stage: ${COPY_ENVD} and ${START_ENVD}`;
  out.add('EnvdMissing', { path, line: result.last.line }, message, hint);
}

const bringsEnvd = ({ file, content }: Result): boolean =>
  content.some(
    (stage) =>
      stage.instructions.some(({ keyword, args }) => /^(?:RUN|COPY|ADD)$/.test(keyword) && ENVD.test(args)) ||
      copies(file, stage).some(copiesCubeFiles),
  );

/** `COPY --from=<cubesandbox base> /usr/ /usr/` and the like. */
function copiesCubeFiles({ from, sources }: Copy): boolean {
  if (!from || from === 'unknown') return false;
  const image = 'image' in from ? from.image : walk(from.stage, (stage) => stage.from).image;
  return (
    image !== undefined && isCubeBase(image) && sources.some((one) => /^\/(?:\.|usr\/(?:bin\/\*?)?|usr)?$/.test(one))
  );
}

/** CubeSandbox runs the image's own ENTRYPOINT and CMD: one of them, or the inherited ENTRYPOINT, has to start envd. */
function checkStart(result: Result, unknownBase: boolean, path: string, out: Findings): void {
  const entrypoint = lastOf(result.settings, 'ENTRYPOINT');
  const command = lastOf(result.settings, 'CMD');
  if (ENVD.test(entrypoint?.args ?? '') || ENVD.test(command?.args ?? '')) return;
  const inherits = result.settingsBase !== undefined && isCubeBase(result.settingsBase);
  if (!entrypoint && (inherits || unknownBase)) return;
  const line = entrypoint?.line ?? result.last.line;
  const message = entrypoint
    ? `this ENTRYPOINT replaces the one that starts envd on port 49983`
    : `nothing starts envd on port 49983: the image keeps the ENTRYPOINT of ${show(result.settingsBase ?? 'its base')}`;
  const hint = entrypoint
    ? 'delete it and keep its program as CMD, or let its program start envd -port 49983 -isnotfc in the background'
    : 'add ENTRYPOINT ["<path>/cube-entrypoint.sh"] with the path that the file was copied to; CMD stays your own';
  out.add('EnvdNotStarted', { path, line }, message, hint);
}

const lastOf = (stages: readonly Stage[], keyword: string): Instruction | undefined => {
  for (const stage of stages) {
    const found = stage.instructions.findLast((one) => one.keyword === keyword);
    if (found) return found;
  }
  return undefined;
};

const IGNORED: readonly (readonly [keyword: string, hint: string])[] = [
  ['ENTRYPOINT', 'delete it; the script of the skill is started by the sandbox itself'],
  ['CMD', 'delete it; the script of the skill is started by the sandbox itself'],
  ['USER', 'delete it, or keep it for the RUN lines that follow; the sandbox runs as "user" with sudo'],
];

function checkE2B(result: Result, path: string, out: Findings): void {
  const { base, baseLine: line } = result;
  if (base !== undefined && (isScratch(base) || isDistroless(base))) {
    const message = `E2B cannot start an image that is built on ${show(base)}: it needs the shell and packages of ${E2B_SYSTEMS}`;
    out.add('DockerfileBaseRefused', { path, line }, message, 'use a distribution image there: FROM debian:12-slim');
  } else if (base !== undefined && isUnknownToE2B(base)) {
    const message = `E2B is known to refuse the distribution of ${show(base)}: it takes ${E2B_SYSTEMS}`;
    out.add('DockerfileBaseUnsupported', { path, line }, message, 'use such an image there: FROM debian:12-slim');
  }
  for (const [keyword, hint] of IGNORED) {
    const found = lastOf(result.settings, keyword);
    if (!found) continue;
    const message = `E2B ignores ${keyword}; only ENV is kept in a sandbox`;
    out.add('DockerfileInstructionIgnored', { path, line: found.line }, message, hint);
  }
}

import { type DockerfileProblem, type LogicalLine, logicalLines } from './dockerlines.ts';
import { expand, flagsAndOperands, platformArgs, readArgs } from './dockerwords.ts';
import { nearest, show } from './text.ts';

/** One instruction after a FROM. */
export interface Instruction {
  /** In capitals. */
  keyword: string;
  args: string;
  line: number;
}

/** Where the content of a stage, or of a `COPY --from`, comes from. `unknown`: the file alone does not tell. */
export type Origin = { stage: Stage } | { image: string } | 'unknown';

/** One FROM and what follows it. */
export interface Stage {
  /** Position in the file, from 0. */
  index: number;
  /** In lower case, as stages are named. */
  name?: string | undefined;
  from: Origin;
  /** Line of its FROM. */
  line: number;
  instructions: Instruction[];
}

/** A Dockerfile as far as its stages; with problems it holds what could be read. */
export interface Dockerfile {
  stages: Stage[];
  /** Stages by name in lower case. */
  byName: Map<string, Stage>;
  problems: DockerfileProblem[];
  /** True when it holds no instruction at all. */
  empty: boolean;
}

const KEYWORDS: ReadonlySet<string> = new Set(
  'ADD ARG CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL MAINTAINER ONBUILD RUN SHELL STOPSIGNAL USER VOLUME WORKDIR'.split(
    ' ',
  ),
);
const STAGE_NAME = /^[a-z][a-z0-9_.-]*$/;
/** As wide as any builder: host, port, path, tag and digest. */
const IMAGE = /^[A-Za-z0-9](?:[A-Za-z0-9._:/-]*[A-Za-z0-9_])?(?:@[a-z0-9+._-]+:[0-9a-f]{32,128})?$/;

interface Reading {
  file: Dockerfile;
  args: Map<string, string>;
}

/**
 * Reads a Dockerfile far enough to know its stages, where each comes from and what it does.
 * Total: any text gives a result; what no builder accepts is in `problems`, with its line.
 * Source: the Dockerfile reference; no build arguments are passed, so an ARG has its default or nothing.
 */
export function parseDockerfile(text: string): Dockerfile {
  const problems: DockerfileProblem[] = [];
  const lines = logicalLines(text, problems);
  const file: Dockerfile = { stages: [], byName: new Map(), problems, empty: lines.length === 0 };
  const reading: Reading = { file, args: platformArgs() };
  for (const line of lines) readLine(line, reading);
  problems.sort((a, b) => a.line - b.line);
  return file;
}

function readLine({ text, line }: LogicalLine, reading: Reading): void {
  const [, word = '', args = ''] = /^(\S+)\s*(.*)$/s.exec(text) ?? [];
  const keyword = word.toUpperCase();
  const { stages, problems } = reading.file;
  const stage = stages.at(-1);
  if (!KEYWORDS.has(keyword)) problems.push({ line, ...unknownInstruction(word) });
  else if (keyword === 'FROM') readFrom(args, line, reading);
  else if (stage) stage.instructions.push({ keyword, args, line });
  else if (keyword === 'ARG') readArgs(args, reading.args);
  else {
    const message = `${keyword} stands before the first FROM`;
    problems.push({ line, message, hint: 'move it below a FROM line; only ARG may stand before' });
  }
}

function unknownInstruction(word: string): { message: string; hint: string } {
  const near = nearest(word, [...KEYWORDS]);
  const hint = near
    ? `did you mean ${near}?`
    : 'end the line before with \\ if it continues here, or start this line with an instruction such as RUN';
  return { message: `"${show(word)}" is not an instruction of a Dockerfile`, hint };
}

function readFrom(args: string, line: number, reading: Reading): void {
  const { stages, problems } = reading.file;
  const { operands } = flagsAndOperands(args);
  const [written, as, name] = operands;
  const stage: Stage = { index: stages.length, from: 'unknown', line, instructions: [] };
  stages.push(stage);
  if (written === undefined || (operands.length > 1 && (operands.length !== 3 || as?.toUpperCase() !== 'AS'))) {
    problems.push({
      line,
      message: 'FROM takes an image, and a name after AS',
      hint: 'write FROM <image> [AS <name>]',
    });
    return;
  }
  stage.from = baseOf(written, line, reading);
  if (name === undefined) return;
  const lower = name.toLowerCase();
  if (!STAGE_NAME.test(lower)) {
    const message = `"${show(name)}" cannot be the name of a stage`;
    problems.push({ line, message, hint: 'start it with a letter and use a-z, 0-9, - _ .' });
    return;
  }
  stage.name = lower;
  reading.file.byName.set(lower, stage);
}

function baseOf(written: string, line: number, { args, file }: Reading): Origin {
  const image = expand(written, args);
  if (image === undefined) return 'unknown';
  if (image === '') {
    const message = `the base image ${show(written)} has no value, since builds get no arguments`;
    file.problems.push({ line, message, hint: 'give it a default before the first FROM: ARG <name>=<image>' });
    return 'unknown';
  }
  const stage = file.byName.get(image.toLowerCase());
  if (stage) return { stage };
  if (IMAGE.test(image)) return { image };
  const message = `"${show(image)}" is not the name of an image`;
  file.problems.push({ line, message, hint: 'write it as <registry>/<repository>:<tag> or with @sha256:<digest>' });
  return 'unknown';
}

/** What `COPY --from=<from>` in `stage` reads: an earlier stage by name or position, else an image. */
export function copySource(file: Dockerfile, stage: Stage, from: string): Origin {
  const named = file.byName.get(from.toLowerCase()) ?? (/^\d+$/.test(from) ? file.stages[Number(from)] : undefined);
  if (named && named.index < stage.index) return { stage: named };
  return IMAGE.test(from) ? { image: from } : 'unknown';
}

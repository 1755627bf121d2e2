import type { StatusFinding } from '../../api/skill.ts';
import { DOCKERFILES } from '../../protocol/names.ts';
import type { Engine } from '../../protocol/types.ts';
import { type FindingCode, VIOLATIONS } from '../../protocol/violations.ts';

const CODE: FindingCode = 'DockerfileSyntaxIgnored';

/** Warnings of a status for what the builder said that it ignored in the Dockerfile of that engine. */
export const ignoredFindings = (texts: readonly string[], engine: string | undefined): StatusFinding[] =>
  texts.map((message) => ({
    code: CODE,
    path: DOCKERFILES[engine as Engine] ?? '',
    message,
    hint: VIOLATIONS[CODE].fix,
  }));

/** Whether a warning came from a build and not from the validation. */
export const isOfBuild = ({ code }: Pick<StatusFinding, 'code'>): boolean => code === CODE;

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseDockerfile } from '../../src/protocol/dockerfile.ts';

/** The folder with the images of the platform's runtimes; also the context of their builds. */
export const IMAGES = fileURLToPath(new URL('../../images', import.meta.url));

export const PLATFORM_IMAGES = ['cubesandbox-python', 'cubesandbox-node', 'e2b-python', 'e2b-node'] as const;
export type PlatformImage = (typeof PLATFORM_IMAGES)[number];

/** Text of an image's Dockerfile. */
export const dockerfileOf = (image: PlatformImage): string => readFileSync(join(IMAGES, image, 'Dockerfile'), 'utf8');

/** The instructions of the last stage, one line each with single blanks. */
export function lastStage(image: PlatformImage): string[] {
  const instructions = parseDockerfile(dockerfileOf(image)).stages.at(-1)?.instructions ?? [];
  return instructions.map(({ keyword, args }) => `${keyword} ${args.replaceAll(/\s+/g, ' ')}`);
}

/** The first command of the RUN that contains `part`, as program and arguments. */
export function commandOf(image: PlatformImage, part: string): [program: string, ...args: string[]] {
  const run = lastStage(image).find((line) => line.startsWith('RUN ') && line.includes(part));
  const [program, ...args] = (run ?? '').slice('RUN '.length).split(' && ')[0]?.split(' ') ?? [];
  if (!program) throw new Error(`images/${image}/Dockerfile has no RUN with ${part}`);
  return [program, ...args];
}

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseDockerfile } from '../../../src/protocol/dockerfile.ts';
import { CUBE_BASE, unpinned } from '../../../src/protocol/dockerimages.ts';
import { DOCKERFILES } from '../../../src/protocol/names.ts';
import type { Engine } from '../../../src/protocol/types.ts';
import { validateSkill } from '../../../src/protocol/validate.ts';
import { dockerfileOf, IMAGES, lastStage, PLATFORM_IMAGES } from '../../support/platform-images.ts';
import { file, skillMd, tree } from '../protocol/support.ts';

const engineOf = (image: string) => image.split('-')[0] as Engine;

/** Findings about a Dockerfile when a skill brings it. */
function lint(engine: Engine, text: string) {
  const { violations, warnings } = validateSkill(tree(skillMd(`runtime: ${engine}`), file(DOCKERFILES[engine], text)));
  return [...violations, ...warnings];
}

const pins = (name: string) =>
  readFileSync(join(IMAGES, 'python', name), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => line.split('==') as [name: string, version: string]);

describe('the images of the platform', () => {
  it.each(PLATFORM_IMAGES)('%s passes the lint of its engine without a word', (image) => {
    expect(lint(engineOf(image), dockerfileOf(image))).toEqual([]);
  });

  it.each(PLATFORM_IMAGES)('%s is a base for a skill of its engine', (image) => {
    expect(lint(engineOf(image), `FROM registry.example.com/skills/${image}:1.0.0\nRUN true\n`)).toEqual([]);
  });

  it.each(PLATFORM_IMAGES)('%s is built on pinned images alone', (image) => {
    const bases = parseDockerfile(dockerfileOf(image)).stages.map(({ from }) => from);
    const images = bases.filter((from) => from !== 'unknown').flatMap((from) => ('image' in from ? [from.image] : []));
    expect(images).toHaveLength(bases.length);
    expect(images.map(unpinned)).toEqual(images.map(() => undefined));
    if (engineOf(image) === 'cubesandbox') expect(images).toContain(CUBE_BASE);
  });

  it.each(['python', 'node'] as const)('gives scripts in %s the same environment on both engines', (language) => {
    const shared = (image: `${Engine}-${typeof language}`) =>
      lastStage(image).filter((line) => !/envd|entrypoint|^WORKDIR|^EXPOSE/.test(line));
    expect(shared(`cubesandbox-${language}`)).toEqual(shared(`e2b-${language}`));
    expect(lastStage(`e2b-${language}`)).toContain('RUN mkdir -p /skill/out && chmod 1777 /skill /skill/out');
  });

  it('installs the promised packages of Python and no other, each pinned with what it needs', () => {
    expect(pins('requirements.txt').map(([name]) => name)).toEqual(
      'requests httpx pydantic pyyaml python-dateutil pandas numpy matplotlib openpyxl python-docx pillow'.split(' '),
    );
    const constraints = new Map(pins('constraints.txt'));
    for (const [name, version] of pins('requirements.txt')) expect(constraints.get(name), name).toBe(version);
    for (const [name, version] of constraints) expect(version, name).toMatch(/^\d+(?:\.\w+)*$/);
  });

  it('installs the promised packages of Node and no other, as locked', () => {
    const read = (name: string) => JSON.parse(readFileSync(join(IMAGES, 'node', name), 'utf8'));
    const { dependencies, type } = read('package.json');
    expect(Object.keys(dependencies).toSorted()).toEqual(['axios', 'dayjs', 'tsx', 'zod']);
    for (const version of Object.values(dependencies)) expect(version).toMatch(/^\d+\.\d+\.\d+$/);
    expect(read('package-lock.json').packages[''].dependencies).toEqual(dependencies);
    // It stands above /skill: a type here would decide how Node reads every .js of a skill.
    expect(type).toBeUndefined();
  });
});

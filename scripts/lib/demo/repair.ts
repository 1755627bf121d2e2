import { ANNOTATIONS } from '../../../src/api/labels.ts';
import type { TestRepository } from '../../../test/support/git.ts';
import { condition, type K8sObject } from '../../../test/support/k8s.ts';
import { SOURCE } from './apply.ts';
import { duration } from './screen.ts';
import type { SkillView } from './skills.ts';
import { type Hands, NAMESPACE, type Stage } from './stage.ts';

/** The skill that the demo breaks and mends, and its file. */
export const VICTIM = 'release/changelog-writer';
export const FILE = 'plugins/release/skills/changelog-writer/SKILL.md';
const OBJECT = `${SOURCE}.release.changelog-writer`;
const WAIT_MS = 60_000;

/** The description with a colon that YAML takes for another key, and the same in quotes. */
const TEXT = 'Release notes: turns commits into a changelog entry. Use it on request.';
const BROKEN = `description: ${TEXT}`;
const MENDED = `description: "${TEXT}"`;

/** The file with another line for its description. */
export function withDescription(file: string, line: string): string {
  const changed = file.replace(/^description: .*$/m, () => line);
  if (changed === file) throw new Error(`${FILE} has no line that begins with "description: "`);
  return changed;
}

const descriptionOf = (file: string): string => /^description: .*$/m.exec(file)?.[0] ?? '';

/** What breaking and mending need. */
export interface Repairable {
  stage: Stage;
  operator: Hands;
  repository: TestRepository;
  /** The file as it was first pushed. */
  original: string;
  /** The Skills before the first change. */
  before: readonly SkillView[];
}

function showDiff({ screen }: Stage, was: string, is: string): void {
  const line = (sign: string, text: string) =>
    text.length + 2 <= screen.width ? `${sign} ${text}` : `${sign} ${text.slice(0, screen.width - 3)}…`;
  screen.say(FILE);
  screen.say(screen.paint('red', line('-', was)), screen.paint('green', line('+', is)));
}

/** Pushes the file and asks the source to look at once; resolves with the time of the push. */
async function push(given: Repairable, was: string, is: string, message: string): Promise<number> {
  const { stage, operator, repository, original } = given;
  showDiff(stage, was, is);
  stage.screen.say('');
  stage.screen.command(`git commit -am '${message}' && git push`);
  stage.screen.command(
    `kubectl annotate --overwrite mps ${SOURCE} -n ${NAMESPACE} ${ANNOTATIONS.requestedAt}="$(date +%s)"`,
  );
  await repository.commit({ [FILE]: withDescription(original, is) }, { message });
  const began = performance.now();
  await operator.k8s.annotate(operator.source(SOURCE), { [ANNOTATIONS.requestedAt]: String(Date.now()) });
  return began;
}

const waitFor = (given: Repairable, what: string, accept: (object: K8sObject) => boolean): Promise<K8sObject> =>
  given.stage.unlessStopped(
    given.operator.k8s.waitFor(given.operator.skill(OBJECT), accept, { what, timeoutMs: WAIT_MS }),
  );

function servedBefore({ before }: Repairable): string {
  const version = before.find((view) => view.name === VICTIM)?.served?.version;
  if (version === undefined) throw new Error(`${VICTIM} is not served, so there is nothing to break`);
  return version;
}

function showCondition({ screen }: Stage, object: K8sObject, type: string): void {
  const { status, reason, message } = condition(object, type) ?? { status: '-', reason: '-', message: '-' };
  const colour = status === 'True' ? 'green' : 'red';
  screen.say(`${screen.paint('bold', type.padEnd(8))} ${screen.paint(colour, status.padEnd(6))} ${reason}`);
  screen.tell(message, undefined, 2);
}

/** Names of the Skills other than the victim that were written meanwhile. */
async function writtenMeanwhile({ operator, before }: Repairable): Promise<string[]> {
  const written: string[] = [];
  for (const { name, object } of before) {
    if (name === VICTIM) continue;
    const after = await operator.k8s.get(operator.skill(object.metadata.name));
    if (after?.metadata.resourceVersion !== object.metadata.resourceVersion) written.push(name);
  }
  return written;
}

/** Pushes a commit that breaks one skill: the old version must stay served, the message must name file, line and fix, the siblings rest. */
export async function breakSkill(given: Repairable): Promise<string> {
  const { stage, original } = given;
  const version = servedBefore(given);
  const began = await push(given, descriptionOf(original), BROKEN, 'Say it shorter');
  const object = await waitFor(given, `${VICTIM} Ready=False for the broken commit`, (skill) => {
    return condition(skill, 'Ready')?.reason === 'Invalid';
  });
  const took = duration(performance.now() - began);
  stage.screen.say('', `Skill ${OBJECT} ${took} later:`);
  showCondition(stage, object, 'Ready');
  showCondition(stage, object, 'Serving');
  stage.screen.say('');
  if (object.status.served?.version !== version || condition(object, 'Serving')?.status !== 'True')
    throw new Error(`version ${version} of ${VICTIM} should have stayed served`);
  if (!/SKILL\.md:\d+:\d+: .+ \(.+\)/.test(condition(object, 'Ready')?.message ?? ''))
    throw new Error(`the message should name file, line and fix: ${condition(object, 'Ready')?.message}`);
  const written = await stage.unlessStopped(writtenMeanwhile(given));
  if (written.length > 0)
    throw new Error(`the commit changed one skill, but these were written: ${written.join(', ')}`);
  return `version ${version} stays served; none of the ${given.before.length - 1} other Skills was touched`;
}

/** Pushes the mended file: a new version must be served. */
export async function mendSkill(given: Repairable): Promise<string> {
  const { stage } = given;
  const old = servedBefore(given);
  const began = await push(given, BROKEN, MENDED, 'Quote the description');
  const object = await waitFor(given, `${VICTIM} Ready=True for the mended commit`, (skill) => {
    return condition(skill, 'Ready')?.status === 'True' && skill.status.served?.version !== old;
  });
  const took = duration(performance.now() - began);
  stage.screen.say('', `Skill ${OBJECT} ${took} later:`);
  showCondition(stage, object, 'Ready');
  stage.screen.say('');
  return `Ready again ${took} after the push: version ${old} → ${object.status.served.version}`;
}

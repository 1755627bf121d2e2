import { gitLocation } from '../../api/defaults.ts';
import type { MarketplaceSource } from '../../api/marketplacesource.ts';
import type { Candidate, Skill, StatusFinding, Version } from '../../api/skill.ts';
import { shortRevision } from './rows.ts';
import { hasOwnImage } from './settled.ts';
import { conditionOf, isTrue, type State, stateOf } from './state.ts';

/** One step on the way from a source to a template. */
export interface Step {
  step: 'source' | 'commit' | 'version' | 'build' | 'template' | 'served';
  /** `stopped`: it goes no further here. `going`: under way. `pending`: an earlier step comes first. */
  state: 'done' | 'stopped' | 'going' | 'pending';
  /** What there is to see: a URL, a commit, a digest, an image, a template id. */
  detail: string;
  reason?: string;
  message?: string;
}

/** A skill's way; the shape of the JSON output. */
export interface Trace {
  skill: string;
  namespace: string;
  /** false: no Skill object was made of it. */
  exists: boolean;
  /** What the spec points at is what is served. */
  ready: boolean;
  steps: Step[];
  /** Where it stopped; absent while it goes on, and when it is through. */
  stopped?: { step: Step['step']; reason: string; message: string };
  /** What to type or do next. */
  next: string[];
  violations?: StatusFinding[];
}

const sha = (commit: string | undefined): string => commit?.slice(0, 12) ?? '';

function refText(ref: MarketplaceSource['spec']['ref']): string {
  const { commit, name, semver, tag, branch } = ref ?? {};
  if (commit) return ` commit ${sha(commit)}`;
  if (name) return ` ref ${name}`;
  if (semver) return ` tags ${semver}`;
  if (tag) return ` tag ${tag}`;
  return branch ? ` branch ${branch}` : '';
}

const stoppedBy = (word: State['word']): Step['state'] =>
  word === 'Ready' ? 'done' : word === 'Progressing' || word === 'Pending' ? 'going' : 'stopped';

/** The step of a MarketplaceSource. Pure. */
export function sourceStep(source: MarketplaceSource): Step {
  const { word, reason, message } = stateOf(source);
  const { spec } = source;
  const where =
    gitLocation(spec)?.url ?? spec.archive?.url ?? spec.archive?.objectKey ?? spec.inline?.configMapRef.name;
  const detail = `MarketplaceSource ${source.metadata.name}, ${spec.type} ${where ?? ''}${refText(spec.ref)}`.trim();
  const state = stoppedBy(word);
  return { step: 'source', state, detail, ...(state === 'done' ? {} : { reason, message }) };
}

/** Step of a Skill's own repository, or of its source. */
function firstStep(skill: Skill, source: MarketplaceSource | undefined): Step {
  const { git, marketplaceRef } = skill.spec.source;
  if (source) return sourceStep(source);
  if (!git) {
    const name = marketplaceRef?.name ?? '';
    const message = `MarketplaceSource ${name} does not exist in namespace ${skill.metadata.namespace ?? ''}`;
    return { step: 'source', state: 'stopped', detail: `MarketplaceSource ${name}`, reason: 'SourceNotFound', message };
  }
  const fetched = conditionOf(skill, 'Fetched');
  const state = fetched === undefined ? 'going' : fetched.status === 'True' ? 'done' : 'stopped';
  const why = state === 'stopped' && fetched ? { reason: fetched.reason, message: fetched.message } : {};
  return { step: 'source', state, detail: `git ${git.url}${refText(git.ref)}`, ...why };
}

function commitStep(skill: Skill, source: MarketplaceSource | undefined): Step {
  const { spec, status } = skill;
  const { observed } = status ?? {};
  const commit = spec.revision?.commit ?? observed?.commit;
  const at = shortRevision(source?.status?.revision);
  const detail = [
    sha(commit) || 'not known yet',
    `last change of ${spec.path}`,
    ...(at === '' ? [] : [`source at ${at}`]),
  ].join(', ');
  if (commit === undefined) return { step: 'commit', state: 'going', detail };
  const ready = conditionOf(skill, 'Ready');
  if (ready?.reason === 'TreeGone')
    return { step: 'commit', state: 'stopped', detail, reason: ready.reason, message: ready.message };
  const read = spec.revision === undefined || spec.revision.tree === observed?.tree;
  return { step: 'commit', state: read ? 'done' : 'going', detail };
}

/** The version that the newest content became: the candidate, or what is served. */
const newest = ({ status }: Skill): Candidate | Version | undefined => status?.candidate ?? status?.served;

function versionStep(skill: Skill): Step {
  const [validated, stored] = [conditionOf(skill, 'Validated'), conditionOf(skill, 'Materialized')];
  const version = newest(skill);
  for (const failed of [validated, stored]) {
    if (failed?.status === 'False')
      return { step: 'version', state: 'stopped', detail: 'not made', reason: failed.reason, message: failed.message };
  }
  if (!version) return { step: 'version', state: validated ? 'going' : 'pending', detail: 'none yet' };
  const detail = `${version.version}, ${version.runtime}, ${version.files} files, ${version.bytes} bytes`;
  return { step: 'version', state: 'done', detail };
}

function buildDetail(skill: Skill): string {
  const version = newest(skill);
  if (version?.image) return version.image;
  const { phase, attempt, jobName, retryAt } = skill.status?.candidate ?? {};
  return [
    phase ?? 'none yet',
    ...(attempt === undefined ? [] : [`attempt ${attempt}`]),
    ...(jobName === undefined ? [] : [`Job ${jobName}`]),
    ...(retryAt === undefined ? [] : [`next at ${retryAt}`]),
  ].join(', ');
}

/** Build or template, by the condition of the step. */
function ofCondition(step: 'build' | 'template', skill: Skill, detail: string): Step {
  const condition = conditionOf(skill, step === 'build' ? 'Built' : 'Registered');
  if (!condition) return { step, state: 'pending', detail };
  if (condition.status === 'True') return { step, state: 'done', detail };
  const { reason, message } = condition;
  // The message of Registered says "comes after the build" while the build is not through.
  const waits = step === 'template' && hasOwnImage(skill) && !isTrue(skill, 'Built');
  if (waits) return { step, state: 'pending', detail };
  return { step, state: condition.status === 'Unknown' ? 'going' : 'stopped', detail, reason, message };
}

function servedStep(skill: Skill): Step {
  const serving = conditionOf(skill, 'Serving');
  const { served, candidate } = skill.status ?? {};
  const { word, reason, message } = stateOf(skill);
  if (candidate?.phase === 'Held')
    return { step: 'served', state: 'stopped', detail: served?.version ?? 'none', reason, message };
  if (!served || serving?.status !== 'True') {
    const why =
      serving && serving.reason !== 'NothingServed' ? { reason: serving.reason, message: serving.message } : {};
    return { step: 'served', state: why.reason === undefined ? 'pending' : 'stopped', detail: 'none', ...why };
  }
  const detail = `${served.version} of commit ${sha(served.commit)}`;
  if (word === 'Ready') return { step: 'served', state: 'done', detail };
  return { step: 'served', state: 'pending', detail: `${detail}, the last good version` };
}

/** All six steps of a Skill that exists. Pure. */
export function stepsOf(skill: Skill, source: MarketplaceSource | undefined): Step[] {
  const own = hasOwnImage(skill);
  const version = newest(skill);
  const build = own ? ofCondition('build', skill, buildDetail(skill)) : undefined;
  const templateDetail =
    version?.templateID ?? (version?.runtime === 'prompt-only' ? 'not needed: prompt-only' : 'none yet');
  return [
    firstStep(skill, source),
    commitStep(skill, source),
    versionStep(skill),
    build ?? { step: 'build', state: version ? 'done' : 'pending', detail: version ? 'not needed' : 'none yet' },
    ofCondition('template', skill, templateDetail),
    servedStep(skill),
  ];
}

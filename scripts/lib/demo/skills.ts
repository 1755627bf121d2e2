import { condition, type K8sObject } from '../../../test/support/k8s.ts';
import type { Style } from './screen.ts';
import { type Cell, table } from './table.ts';

/** A version of a Skill's status, as far as the demo looks at it. */
export interface ShownVersion {
  version: string;
  digest: string;
  manifestSHA256: string;
  templateID?: string;
}

/** What the demo shows of one Skill. */
export interface SkillView {
  object: K8sObject;
  /** `<plugin>/<skill>` */
  name: string;
  ready: boolean;
  /** The operator has nothing left to do until something changes outside. */
  settled: boolean;
  reason: string;
  message: string;
  served: ShownVersion | undefined;
  /** The served version, else the one that waits: both lie in the bucket. */
  stored: ShownVersion | undefined;
}

const HEADER = ['SKILL', 'RUNTIME', 'VERSION', 'TEMPLATE', 'STATE'];
const NONE: Cell = { text: '-', style: 'dim' };

/** Reads a Skill's status. A status that is behind its spec is not settled, whatever it says. */
export function viewOf(object: K8sObject): SkillView {
  const { metadata, spec, status } = object;
  const ready = condition(object, 'Ready');
  const current = status?.observedGeneration === metadata.generation;
  return {
    object,
    name: `${spec.plugin}/${String(spec.path).split('/').at(-1)}`,
    ready: current && ready?.status === 'True',
    settled: current && ready !== undefined && ready.status !== 'Unknown' && !condition(object, 'Reconciling'),
    reason: ready?.reason ?? '',
    message: ready?.message ?? '',
    served: status?.served,
    stored: status?.served ?? status?.candidate,
  };
}

/** `Ready`, or the reason why not; yellow when the demo expects it. */
function state({ ready, settled, reason }: SkillView): Cell {
  if (ready) return { text: 'Ready', style: 'green' };
  if (!settled) return { text: '…', style: 'dim' };
  return { text: reason, style: reason === 'BuildNotConfigured' ? 'yellow' : 'red' };
}

function row(view: SkillView): Cell[] {
  const { name, object, served } = view;
  const text = (value: string | undefined): Cell => (value ? { text: value } : NONE);
  return [{ text: name }, text(object.status?.runtime), text(served?.version), text(served?.templateID), state(view)];
}

/** The table of Skills, at most `rows` of them (those that are not Ready first); a last line says how many are left out. */
export function skillTable(
  views: readonly SkillView[],
  options: { rows: number; width: number; paint: (style: Style, text: string) => string },
): string[] {
  const { rows, width, paint } = options;
  const chosen =
    views.length <= rows ? views : views.toSorted((a, b) => Number(a.ready) - Number(b.ready)).slice(0, rows);
  const lines = table(HEADER, chosen.map(row), width, paint);
  const left = views.length - chosen.length;
  return left > 0 ? [...lines, paint('dim', `and ${left} more`)] : lines;
}

const plural = (n: number, word: string): string => `${n} ${word}${n === 1 ? '' : 's'}`;

/** `6 of 9 Skills Ready, 2 BuildNotConfigured, 1 Invalid`: how many are Ready, and how many are not for which reason. */
export function countLine(views: readonly SkillView[]): string {
  const reasons = new Map<string, number>();
  for (const view of views) {
    if (view.ready) continue;
    const key = view.settled ? view.reason : 'under way';
    reasons.set(key, (reasons.get(key) ?? 0) + 1);
  }
  const ready = views.filter((view) => view.ready).length;
  const rest = [...reasons].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([reason, n]) => `${n} ${reason}`);
  return [`${ready} of ${plural(views.length, 'Skill')} Ready`, ...rest].join(', ');
}

/** The skill of examples/marketplace that is invalid on purpose. */
export const BROKEN_ON_PURPOSE = 'media/image-contact-sheet';

/** Throws when a skill of examples/marketplace did not come out as its README says. */
export function checkExamples(views: readonly SkillView[]): void {
  const wrong = views.filter(({ name, ready, reason }) =>
    name === BROKEN_ON_PURPOSE ? reason !== 'Invalid' : !ready && reason !== 'BuildNotConfigured',
  );
  if (views.length === 0) throw new Error('the marketplace brought no Skills');
  if (wrong.length === 0) return;
  const list = wrong.map(({ name, reason, message }) => `${name}: ${reason} ${message}`).join('\n');
  throw new Error(`these Skills did not come out as expected:\n${list}`);
}

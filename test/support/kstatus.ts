import { SKILL_CONDITIONS, SOURCE_CONDITIONS } from '../../src/api/conditions.ts';
import { REASONS } from '../../src/base/reasons.ts';
import { VIOLATIONS } from '../../src/protocol/violations.ts';
import type { K8sObject } from './k8s.ts';

interface Condition {
  type: string;
  status: string;
  reason: string;
  message: string;
  observedGeneration?: number;
  lastTransitionTime: string;
}

const ABNORMAL = ['Reconciling', 'Stalled', 'NameConflict', 'PruneBlocked'];
const MAX_BYTES: Record<string, number> = { Skill: 16 * 1024, MarketplaceSource: 64 * 1024 };
const TYPES: Record<string, readonly string[]> = { Skill: SKILL_CONDITIONS, MarketplaceSource: SOURCE_CONDITIONS };

/** Rules of one condition. */
function* conditionFaults(condition: Condition, object: K8sObject): Generator<string> {
  const { type, status, reason, message, observedGeneration } = condition;
  const generation = object.metadata.generation ?? 0;
  if (!TYPES[object.kind]?.includes(type)) yield `condition ${type} is not in the closed list`;
  if (!Object.hasOwn(REASONS, reason)) yield `${type} has reason ${reason}, which is not in the catalogue`;
  if (ABNORMAL.includes(type) && status !== 'True') yield `${type} is ${status}; it may only stand while True`;
  if (message.length === 0 || message.length > 2048) yield `the message of ${type} has ${message.length} characters`;
  if (/undefined|\[object |NaN|\bnull\b/.test(message)) yield `the message of ${type} is broken: ${message}`;
  if (observedGeneration !== undefined && observedGeneration > generation)
    yield `${type} observed generation ${observedGeneration} of ${generation}`;
  if (Number.isNaN(Date.parse(condition.lastTransitionTime))) yield `${type} has no transition time`;
}

/** How Ready, Reconciling and Stalled stand together (kstatus). */
function* polarityFaults(conditions: Condition[]): Generator<string> {
  const find = (type: string) => conditions.find((condition) => condition.type === type);
  const [ready, reconciling, stalled] = [find('Ready'), find('Reconciling'), find('Stalled')];
  if (!ready) {
    yield 'there is no condition Ready';
    return;
  }
  if (reconciling && stalled) yield 'Reconciling and Stalled stand together';
  if (ready.status === 'True' && (reconciling ?? stalled))
    yield `Ready stands beside ${(reconciling ?? stalled)?.type}`;
  const explained = reconciling ?? stalled ?? (ready.reason === 'Suspended' ? ready : undefined);
  if (ready.status !== 'True' && !explained) yield `Ready is ${ready.status} with neither Reconciling nor Stalled`;
  const types = conditions.map(({ type }) => type);
  if (new Set(types).size !== types.length) yield `a condition stands twice: ${types}`;
}

function* countFaults({ skills }: { skills?: Record<string, number> }): Generator<string> {
  if (!skills) return;
  const { total, ...states } = skills;
  const sum = Object.values(states).reduce((a, b) => a + b, 0);
  if (sum !== total) yield `the counts ${JSON.stringify(skills)} do not add up`;
}

/** Rules of the other parts of a status. */
function* partFaults(status: NonNullable<K8sObject['status']>): Generator<string> {
  const { served, candidate, retired = [], problems = [], violations = [], warnings = [] } = status;
  for (const slot of [served, candidate, ...retired]) {
    if (slot && slot.version !== slot.digest.slice(0, 12)) yield `version ${slot.version} is not of ${slot.digest}`;
  }
  for (const { reason } of [candidate, ...problems].filter((part) => part?.reason)) {
    if (!Object.hasOwn(REASONS, reason)) yield `reason ${reason} is not in the catalogue`;
  }
  for (const { code, hint } of [...violations, ...warnings]) {
    if (!Object.hasOwn(VIOLATIONS, code)) yield `code ${code} is not in the catalogue`;
    if (!hint) yield `${code} has no hint`;
  }
  yield* countFaults(status);
}

/** What is wrong with the status of an object by the rules that hold at any moment; empty: nothing. */
export function statusFaults(object: K8sObject): string[] {
  const { kind, metadata, status = {} } = object;
  const conditions: Condition[] = status.conditions ?? [];
  const faults: string[] = [];
  const bytes = Buffer.byteLength(JSON.stringify(status));
  if (bytes > (MAX_BYTES[kind] ?? 0)) faults.push(`the status has ${bytes} bytes`);
  if (typeof status.observedGeneration !== 'number') faults.push('observedGeneration is missing');
  else if (status.observedGeneration > (metadata.generation ?? 0)) faults.push('observedGeneration is ahead');
  // Before the first pass there is nothing but the default; a source may have its counts first.
  const begun = conditions.some(({ type }) => type !== 'SkillsHealthy');
  if (begun) faults.push(...polarityFaults(conditions));
  for (const condition of conditions) faults.push(...conditionFaults(condition, object));
  faults.push(...partFaults(status));
  return faults.map((fault) => `${kind} ${metadata.name}: ${fault}`);
}

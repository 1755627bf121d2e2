import pLimit from 'p-limit';
import { effectiveSource, notSupportedYet } from '../../api/defaults.ts';
import { ANNOTATIONS, FIELD_MANAGERS } from '../../api/labels.ts';
import type { MarketplaceSource, Problem } from '../../api/marketplacesource.ts';
import { MARKETPLACE_SOURCES } from '../../api/resources.ts';
import type { Skill } from '../../api/skill.ts';
import { type Clock, rfc3339 } from '../../base/clock.ts';
import { type PolicyError, stalled } from '../../base/errors.ts';
import { inSlices } from '../../base/slices.ts';
import type { Writer } from '../../kube/apply.ts';
import type { EventInput } from '../../kube/events.ts';
import type { Key, KubeApi, KubeObject, ReconcileResult, Store } from '../../kube/types.ts';
import type { Outcome } from '../../lifecycle/condition.ts';
import { summarizeSource } from '../../lifecycle/source-summary.ts';
import { createSkillMdCache, type Discovery, discover } from '../../marketplace/discover.ts';
import type { Resolved } from '../../marketplace/port.ts';
import { HostBusy } from '../githosts.ts';
import { explained } from '../retry-now.ts';
import { type Expecting, sameFields, writeStatus } from '../status-writer.ts';
import { inNameOrder, SkillApplier } from './apply.ts';
import { transitions } from './events.ts';
import { type LookDeps, look } from './look.ts';
import { blockOf, type Plan, planSkills } from './plan.ts';
import { blockedMessage, capProblems } from './problems.ts';
import { webhookProblem, withWebhook } from './webhook.ts';

/** What the controller works with. */
export interface SourceDeps extends LookDeps {
  api: KubeApi;
  sources: Store<MarketplaceSource> & Expecting;
  /** Index `controller`: uid of the controlling owner. */
  skills: Store<Skill> & Expecting;
  /** Whether this installation receives webhooks. */
  webhooks: boolean;
  events: { record(regarding: KubeObject, input: EventInput): void };
  clock: Clock;
  random?: () => number;
}

/** Name of the index of Skills by the uid of their controlling source. */
export const BY_CONTROLLER = 'controller';

/** Fields of the status that this controller writes; the counts and SkillsHealthy are another's. */
const OWNED = [
  'observedGeneration',
  'revision',
  'inventory',
  'observedSpec',
  'problems',
  'lastHandledReconcileAt',
  'conditions',
];
const PARALLEL_WRITES = 16;
/** Share of the interval by which it is lengthened at random, so that sources do not poll in step. */
const JITTER = 0.1;

/** What a pass learnt so far; on an error the rest stays as the status has it. */
interface Pass {
  source: MarketplaceSource;
  children: Skill[];
  fetched?: string | undefined;
  revision?: string | undefined;
  inventory?: string | undefined;
  observedSpec?: string | undefined;
  problems?: Problem[] | undefined;
  /** Why no delivery will be accepted; null: nothing in the way; absent: not looked at. */
  webhook?: Problem | null | undefined;
  applied?: number;
  blocked?: string | undefined;
  /** For the event: what changed. */
  changes?: { added: number; changed: number; removed: number };
}

/** Reconciles MarketplaceSources: resolve, fetch, discover, apply, prune, one status write. */
export class SourceController {
  readonly #deps: SourceDeps;
  readonly #verdicts = createSkillMdCache();
  readonly #applier: SkillApplier;
  readonly #statusWriter: Writer;

  constructor(deps: SourceDeps) {
    this.#deps = deps;
    this.#applier = new SkillApplier(deps.api, deps.skills);
    this.#statusWriter = { api: deps.api, resource: MARKETPLACE_SOURCES, fieldManager: FIELD_MANAGERS.source };
  }

  /** spec.interval in milliseconds; what Stalled and Waiting go by. */
  intervalOf = (key: Key): number => {
    const source = this.#deps.sources.get(key);
    return source ? effectiveSource(source.spec).intervalMs : 60_000;
  };

  /** One whole pass. It is called only when one is due: a spec change, a request, the interval, a retry. */
  reconcile = async (key: Key, signal: AbortSignal): Promise<ReconcileResult> => {
    const source = this.#deps.sources.get(key);
    if (!source || source.metadata.deletionTimestamp) {
      this.#deps.remotes.forget('source', key);
      return {};
    }
    const pass: Pass = { source, children: this.#deps.skills.byIndex(BY_CONTROLLER, source.metadata.uid ?? '') };
    if (source.spec.suspend) {
      await this.#finish(pass, { kind: 'Done' }, signal);
      return {};
    }
    try {
      await this.#run(pass, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      if (error instanceof HostBusy) return { requeueAfterMs: error.lookAgainMs, undecided: true };
      const failure = explained(error, 'marketplacesource', source);
      await this.#finish(pass, outcomeOf(failure, pass), signal);
      throw failure;
    }
    await this.#finish(pass, { kind: 'Done' }, signal);
    const jitter = 1 + JITTER * (this.#deps.random ?? Math.random)();
    return { requeueAfterMs: Math.round(this.intervalOf(key) * jitter) };
  };

  async #run(pass: Pass, signal: AbortSignal): Promise<void> {
    const { source } = pass;
    const unsupported = notSupportedYet(source.spec);
    if (unsupported) {
      throw stalled(
        'NotSupportedYet',
        `${unsupported} is not supported by this release; remove it, or use type git, git-subdir or github`,
      );
    }
    pass.webhook = await webhookProblem(source, this.#deps, signal);
    const { resolved, root, allowed, children, observedSpec, reader } = await look(this.#deps, pass, signal);
    await using _open = reader;
    pass.children = children;
    pass.observedSpec = observedSpec;
    pass.fetched = resolved.revision;
    if (!reader) {
      pass.applied = children.filter((child) => !child.metadata.deletionTimestamp).length;
      pass.blocked = blockOf(source)?.message;
      return;
    }
    const { include = [], exclude = [] } = source.spec;
    const found = await discover(reader, { path: root, include, exclude, cache: this.#verdicts }, signal);
    await this.#carryOut(pass, resolved, found, allowed, signal);
  }

  async #carryOut(
    pass: Pass,
    resolved: Resolved,
    found: Discovery,
    allowed: boolean,
    signal: AbortSignal,
  ): Promise<void> {
    const { source, children } = pass;
    const { followed = [] } = this.#deps.shard ?? {};
    const input = { source, children, found: found.skills, commit: resolved.commit, pruneAllowed: allowed, followed };
    const plan = await inSlices(planSkills(input), signal);
    const clashes = await this.#write(source, plan, signal);
    const known = new Set(children.map((child) => child.spec.path));
    // A directory that lost its SKILL.md while its Skill exists is that Skill's matter: it says so in its own status.
    const own = found.problems.filter(({ reason, path }) => reason !== 'SkillMdMissing' || !known.has(path));
    const problems = [...own, ...clashes];
    if (found.skills.length === 0) {
      problems.push({
        path: 'plugins',
        reason: 'NoSkillsFound',
        message: `${resolved.revision} has no plugins/<plugin>/skills/<skill>/SKILL.md; check spec.ref, the path of a git-subdir source, and include and exclude`,
      });
    }
    pass.revision = resolved.revision;
    pass.inventory = clashes.length > 0 ? '' : plan.inventory;
    pass.problems = capProblems(problems);
    pass.applied = plan.live - clashes.length;
    pass.blocked = plan.blocked && blockedMessage(source, resolved, plan.blocked);
    const names = new Set(children.map((child) => child.metadata.name));
    const added = plan.apply.filter(({ name }) => !names.has(name)).length - clashes.length;
    pass.changes = { added, changed: plan.apply.length - added - clashes.length, removed: plan.remove.length };
  }

  async #write(source: MarketplaceSource, plan: Plan, signal: AbortSignal): Promise<Problem[]> {
    const limit = pLimit(PARALLEL_WRITES);
    const problems = await Promise.all(
      inNameOrder(plan.apply).map((group) => limit(() => this.#applier.applyInTurn(source, group, signal))),
    );
    const clashes = problems.flat();
    await Promise.all(plan.remove.map((skill) => limit(() => this.#applier.remove(skill, signal))));
    return clashes;
  }

  async #finish(pass: Pass, outcome: Outcome<'Fetched'>, signal: AbortSignal): Promise<void> {
    const { source } = pass;
    const before = source.status ?? {};
    const problems = withWebhook(pass.problems ?? before.problems ?? [], pass.webhook, before.problems);
    const summary = summarizeSource({
      generation: source.metadata.generation ?? 0,
      now: rfc3339(this.#deps.clock.now()),
      status: before,
      suspended: source.spec.suspend ?? false,
      outcome,
      fetched: pass.fetched,
      applied: pass.applied ?? 0,
      problems: problems.length,
      pruneBlocked: pass.blocked,
    });
    const requestedAt = source.metadata.annotations?.[ANNOTATIONS.requestedAt] ?? before.lastHandledReconcileAt;
    const done = outcome.kind === 'Done';
    const status = {
      ...summary,
      revision: pass.revision ?? before.revision,
      inventory: pass.inventory ?? before.inventory,
      observedSpec: (done ? pass.observedSpec : undefined) ?? before.observedSpec,
      ...(problems.length > 0 ? { problems } : {}),
      ...(requestedAt === undefined ? {} : { lastHandledReconcileAt: requestedAt }),
    };
    const current = { ...before, conditions: before.conditions?.filter(({ type }) => type !== 'SkillsHealthy') };
    if (sameFields(current, status, OWNED)) return;
    const written = await writeStatus(this.#statusWriter, this.#deps.sources, source, status, signal);
    if (!written) return;
    for (const event of transitions(source, summary.conditions, pass.changes)) this.#deps.events.record(source, event);
  }
}

/** A failure before the fetch was done belongs to Fetched. */
const outcomeOf = (failure: PolicyError, pass: Pass): Outcome<'Fetched'> => ({
  kind: 'Failed',
  policy: failure.policy,
  reason: failure.reason,
  message: failure.message,
  ...(pass.fetched === undefined ? { step: 'Fetched' as const } : {}),
});

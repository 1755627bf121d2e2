import { readFileSync } from 'node:fs';
import { API_VERSION } from '../../../src/api/labels.ts';
import { bookmark, type Write, writesSince } from '../../support/audit.ts';
import { eventually } from '../../support/eventually.ts';
import type { TestRepository } from '../../support/git.ts';
import type { K8sObject, Ref } from '../../support/k8s.ts';
import { type Market, marketplace, skillMd } from '../../support/market.ts';
import type { Operator } from '../../support/operator.ts';

/**
 * Flags of an operator without a lease: nobody competes with it, a killed one is followed at once, and a starved machine does not end
 * it. The lease has tests of its own.
 */
export const ALONE = ['--leader-election=false'];

/** Plugins `p0`… of fifty prompt-only skills `<prefix>-<number>` each. */
export function manySkills(prefix: string, count: number, generation = 0): Market {
  const market: Market = {};
  for (let i = 0; i < count; i++) {
    const name = `${prefix}-${i}`;
    const plugin = `p${Math.floor(i / 50)}`;
    market[plugin] = { ...market[plugin], [name]: skillMd({ name, body: `Steps ${generation} of ${name}.` }) };
  }
  return market;
}

/** Changes the body of one skill of `manySkills`. */
export const changeSkill = (repository: TestRepository, prefix: string, index: number, generation: number) => {
  const name = `${prefix}-${index}`;
  return repository.commit(
    marketplace({
      [`p${Math.floor(index / 50)}`]: { [name]: skillMd({ name, body: `Steps ${generation} of ${name}.` }) },
    }),
  );
};

/** All Skills of the operator's namespace, or of one source. */
export async function listSkills({ k8s, namespace }: Operator, source?: string): Promise<K8sObject[]> {
  const skills = await k8s.list({ apiVersion: API_VERSION, kind: 'Skill', namespace });
  return source === undefined ? skills : skills.filter(({ metadata }) => metadata.name.startsWith(`${source}.`));
}

/** Waits until that many Skills of a source are Ready and its counts say so. */
export async function waitCounts(operator: Operator, source: Ref, ready: number, timeoutMs = 60_000): Promise<void> {
  await operator.k8s.waitFor(source, ({ status }) => status?.skills?.ready === ready && status.skills.total === ready, {
    timeoutMs,
    what: `${ready} ready skills of ${source.name}`,
  });
}

/** The writes of this operator since a bookmark; the Lease, which it renews all the time, left out. */
export function ownWrites({ info, account }: Operator, since: number): Write[] {
  const user = `system:serviceaccount:${account.namespace}:skill-operator`;
  return writesSince(info, since, (write) => write.user === user && write.resource !== 'leases');
}

/** Writes as counts by `verb resource`, sorted. */
export function tally(writes: Write[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { verb, resource, code } of writes) {
    const key = `${verb} ${resource}${code >= 400 ? ` ${code}` : ''}`;
    counts[key] = (counts[key] ?? 0) + 1;
  }
  return Object.fromEntries(Object.entries(counts).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Waits until the operator has written nothing for `quietMs`, and returns the bookmark after its last write. */
export async function waitQuiet(operator: Operator, quietMs = 1_500): Promise<number> {
  let mark = bookmark(operator.info);
  let since = performance.now();
  return await eventually(
    () => {
      if (ownWrites(operator, mark).length > 0) {
        mark = bookmark(operator.info);
        since = performance.now();
      }
      return performance.now() - since >= quietMs ? mark : false;
    },
    { timeoutMs: 60_000, what: 'the operator to be quiet', intervalMs: 100 },
  );
}

/** Number of requests of a service (`ls-refs`, `fetch`) for a repository over HTTP so far. */
export function gitRequests({ info }: Operator, { name }: Pick<TestRepository, 'name'>, service: string): number {
  const line = `${service} /pub/${name}.git`;
  return readFileSync(info.git.accessLog, 'utf8')
    .split('\n')
    .filter((one) => one === line).length;
}

/** What a Skill says, without points in time and what the API server counts: equal for equal histories of content. */
export function essence({ metadata, spec, status }: K8sObject): unknown {
  const conditions = (status?.conditions ?? []) as { type: string; status: string; reason: string; message: string }[];
  const { conditions: _, lastHandledReconcileAt: __, ...rest } = status ?? {};
  return {
    name: metadata.name,
    spec,
    status: rest,
    conditions: conditions.map(({ type, status: is, reason, message }) => ({ type, status: is, reason, message })),
  };
}

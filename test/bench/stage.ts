import { ANNOTATIONS, API_VERSION } from '../../src/api/labels.ts';
import type { ClusterInfo } from '../support/cluster-info.ts';
import { eventually } from '../support/eventually.ts';
import { condition, K8s, type K8sObject } from '../support/k8s.ts';
import { isReady } from '../support/market.ts';
import { type Operator, startOperator } from '../support/operator.ts';
import type { AuditedWrite, AuditTail } from './audit-tail.ts';
import { clear } from './floor.ts';
import { figuresOf } from './procstat.ts';
import { describeProfile } from './profile.ts';
import type { Reading } from './readings.ts';
import type { Row } from './rows.ts';

/** What every scenario works with. */
export interface Bench {
  info: ClusterInfo;
  audit: AuditTail;
  /** The operator's bundle. */
  program: string;
  /** NODE_OPTIONS of the image. */
  nodeOptions: string;
  /** Where CPU profiles go; undefined: none are made. */
  profileDir: string | undefined;
  /** Prints a row of the result. */
  emit: (row: Row) => void;
  /** Prints what is being done. */
  say: (line: string) => void;
  /** Operators that run; whoever ends the bench early ends them too. */
  running: Set<AsyncDisposable>;
}

const POLL_MS = 20;
const QUIET_MS = 6_000;
const PAGE = 500;

/** A bundle of the operator that runs with the rights of the chart and watches the whole cluster, as users run it. */
export class Stage implements AsyncDisposable {
  readonly bench: Bench;
  readonly operator: Operator;
  readonly #user: string;

  private constructor(bench: Bench, operator: Operator) {
    this.bench = bench;
    this.operator = operator;
    this.#user = `system:serviceaccount:${operator.account.namespace}:skill-operator`;
  }

  static async open(bench: Bench): Promise<Stage> {
    const { info, program, nodeOptions, profileDir } = bench;
    const profiling = profileDir === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileDir}`];
    const env = { NODE_OPTIONS: [nodeOptions, ...profiling].join(' ') };
    const stage = new Stage(bench, await startOperator(info, { main: program, watchAll: true, env }));
    bench.running.add(stage);
    return stage;
  }

  get namespace(): string {
    return this.operator.namespace;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.bench.running.delete(this);
    await this.operator[Symbol.asyncDispose]();
  }

  /** Stops the operator, and prints where its time went when it was profiled. */
  async stop(): Promise<void> {
    const { pid } = this.operator;
    await this.operator.stop();
    const { profileDir, say } = this.bench;
    if (profileDir !== undefined) for (const line of describeProfile(profileDir, pid)) say(line);
  }

  /** Removes what the scenario left in the cluster, so that the next one starts from nothing; only after `stop`. */
  async clear(): Promise<void> {
    await using k8s = new K8s(this.bench.info.kubeconfig);
    await clear(k8s, this.namespace);
  }

  async reading(): Promise<Reading> {
    return { ...figuresOf(this.operator.pid), samples: await this.operator.metrics() };
  }

  /** The operator's own writes to the API after a mark, without its lease. */
  writesSince(mark: number): AuditedWrite[] {
    return this.bench.audit.since(mark, ({ user, resource }) => user === this.#user && resource !== 'leases');
  }

  /** Waits until all Skills that `count` asks for are Ready; resolves with them and the time of the last status write. */
  async allReady(mark: number, count: number, timeoutMs: number): Promise<{ skills: K8sObject[]; at: number }> {
    await this.until(() => new Set(this.#statusWrites(mark).map(({ name }) => name)).size >= count, timeoutMs);
    const skills = await eventually(() => this.#ready(count), {
      timeoutMs,
      what: `all ${count} Skills Ready`,
      intervalMs: 500,
    });
    return { skills, at: Math.max(...this.#statusWrites(mark).map(({ at }) => at)) };
  }

  /** Waits for a condition that costs nothing to look at; fails at once when the operator dies. */
  async until(accept: () => boolean, timeoutMs: number, what = 'the operator to finish'): Promise<void> {
    await eventually(
      async () => {
        await this.operator.check();
        return accept();
      },
      { timeoutMs, what, intervalMs: POLL_MS },
    );
  }

  /** Time of the next successful status write of one Skill after a mark. */
  async statusOf(name: string, mark: number, timeoutMs: number): Promise<number> {
    const find = () => this.#statusWrites(mark).findLast((write) => write.name === name)?.at;
    await this.until(() => find() !== undefined, timeoutMs, `a status of Skill ${name}`);
    return find() ?? Number.NaN;
  }

  /** Asks for a pass of a source; resolves with the time just before the request. */
  async request(source: string, value: string): Promise<number> {
    const at = Date.now();
    await this.operator.k8s.annotate(this.operator.source(source), { [ANNOTATIONS.requestedAt]: value });
    return at;
  }

  /** Waits until nothing was written for longer than counts of a source lag behind (five seconds). */
  async quiet(timeoutMs = 90_000): Promise<void> {
    let mark = this.bench.audit.mark();
    let since = performance.now();
    const rested = () => {
      if (this.writesSince(mark).length > 0) {
        mark = this.bench.audit.mark();
        since = performance.now();
      }
      return performance.now() - since > QUIET_MS;
    };
    await this.until(rested, timeoutMs, 'the operator to rest');
  }

  #statusWrites(mark: number): AuditedWrite[] {
    return this.writesSince(mark).filter(({ resource, code }) => resource === 'skills/status' && code === 200);
  }

  /** All Skills of the namespace, in pages: ten thousand in one answer would take longer than a request may. */
  async #skills(): Promise<K8sObject[]> {
    const path = `/apis/${API_VERSION}/namespaces/${this.namespace}/skills?limit=${PAGE}`;
    const all: K8sObject[] = [];
    let next = '';
    do {
      const { status, text } = await this.operator.k8s.api.request('GET', path + next);
      if (status !== 200) throw new Error(`GET ${path}: ${status} ${text.slice(0, 300)}`);
      const { items, metadata } = JSON.parse(text) as { items: K8sObject[]; metadata: { continue?: string } };
      all.push(...items);
      next = metadata.continue ? `&continue=${encodeURIComponent(metadata.continue)}` : '';
    } while (next !== '');
    return all;
  }

  async #ready(count: number): Promise<K8sObject[] | undefined> {
    await this.operator.check();
    const skills = await this.#skills();
    const ready = skills.filter(isReady);
    if (ready.length === count) return skills;
    const odd = skills.find((skill) => !ready.includes(skill));
    throw new Error(
      `${ready.length} of ${skills.length} are Ready; ${odd?.metadata.name}: ${JSON.stringify(odd && condition(odd, 'Ready'))}`,
    );
  }
}

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { request } from 'undici';
import { stringify } from 'yaml';
import type { SeenRequest } from '../../contract/engine/stubs/server.ts';
import type { ClusterInfo, NodeInfo } from '../cluster-info.ts';
import type { TestFile } from '../git.ts';
import { condition, type K8s, type K8sObject, type Ref } from '../k8s.ts';
import { applySource, marketplace, newRepository, requestPass, skillMd } from '../market.ts';
import { type Operator, startOperator } from '../operator.ts';
import { listObjects } from '../s3.ts';
import { type ByoOptions, type ByoParts, type EngineName, KEYS, openParts, settingsOf } from './parts.ts';

/** Builds, pulls and polls of one BYO version on a busy machine. */
export const LONG_MS = 120_000;

const VERDICTS = ['SuccessCriteriaMet', 'FailureTarget', 'Complete', 'Failed'];
const hasVerdict = (job: K8sObject): boolean => VERDICTS.some((type) => condition(job, type)?.status === 'True');

/** An operator that builds on the node, the engines' stubs, and hands on everything that a version leaves behind. */
export class ByoStage implements AsyncDisposable {
  readonly operator: Operator;
  readonly node: NodeInfo;
  /** Namespace of the Jobs. */
  readonly builds: string;
  readonly e2b: ByoParts['e2b'];
  readonly cube: ByoParts['cube'];
  readonly gates: ByoParts['gates'];
  /** Every secret value of this stage, by what it is. */
  readonly secrets: ReadonlyMap<string, string>;
  readonly #close: () => Promise<void>;

  /** Use `openByoStage`. */
  constructor(operator: Operator, parts: ByoParts, close: () => Promise<void>) {
    this.operator = operator;
    this.node = parts.node;
    this.builds = parts.builds;
    this.e2b = parts.e2b;
    this.cube = parts.cube;
    this.gates = parts.gates;
    this.#close = close;
    this.bare = parts.k8s;
    const { username, password } = parts.node.registry;
    this.secrets = new Map([
      ['registry password', password],
      ['registry credential', Buffer.from(`${username}:${password}`).toString('base64')],
      ['S3 secret key', parts.info.s3.secretKey],
      ['E2B key', KEYS.e2b],
      ['CubeSandbox key', KEYS.cubesandbox],
    ]);
  }

  /** Access that does not mind when the operator is dead. */
  readonly bare: K8s;

  /** Calls `act` for every request that changed something at an engine, before the operator hears of it. */
  onEngineWrite(act: () => void): void {
    const after = ({ method }: SeenRequest): void => {
      if (method !== 'GET') act();
    };
    this.e2b.after = after;
    this.cube.after = after;
  }

  get k8s(): K8s {
    return this.operator.k8s;
  }

  /** A Dockerfile on the node's busybox. */
  from(...lines: string[]): string {
    return `${[`FROM ${this.node.images.busybox}`, ...lines].join('\n')}\n`;
  }

  /** Files of a skill with a Dockerfile of its own. */
  skill(engine: EngineName, name: string, dockerfile: string, more: Record<string, TestFile> = {}) {
    return { 'SKILL.md': skillMd({ name, runtime: engine }), [`.${engine}.dockerfile`]: dockerfile, ...more };
  }

  /** A marketplace of one plugin `p`; its Skills are `<name>.p.<skill>`. */
  async market(name: string, skills: Record<string, Record<string, TestFile>>, spec: Record<string, unknown> = {}) {
    const repository = await newRepository(this.operator);
    await repository.commit(marketplace({ p: skills }));
    const source = await applySource(this.operator, name, repository, spec);
    const push = async (change: Record<string, Record<string, TestFile>>) => {
      await repository.commit(marketplace({ p: change }), { keep: false });
      await requestPass(this.k8s, source);
    };
    return { repository, source, push };
  }

  /** Waits for a Skill; `what` tells the reader of a failure what was missed. */
  async until(name: string, what: string, accept: (status: K8sObject) => boolean, timeoutMs = LONG_MS) {
    return await this.k8s.waitFor(this.operator.skill(name), accept, { timeoutMs, what: `Skill ${name}: ${what}` });
  }

  /** Ids of all templates of an engine whose names or images are of this Skill. */
  templates(engine: EngineName, bareName: string): string[] {
    return engine === 'e2b'
      ? [...this.e2b.templates.values()].filter((t) => t.alias.startsWith(`${bareName}-`)).map((t) => t.templateID)
      : [...this.cube.templates.values()].filter((t) => t.alias?.startsWith(`${bareName}-`)).map((t) => t.templateID);
  }

  /** Answer of the registry, with its credential. */
  async registry(path: string, method: 'GET' | 'HEAD' = 'GET') {
    const { address, username, password } = this.node.registry;
    const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
    const accept = 'application/vnd.oci.image.manifest.v1+json';
    const { statusCode, headers, body } = await request(`http://${address}/v2/${path}`, {
      method,
      headers: { authorization, accept },
    });
    const text = await body.text();
    return { status: statusCode, text, digest: String(headers['docker-content-digest'] ?? '') };
  }

  /** True when the registry has the pinned image. */
  async hasImage(image: string): Promise<boolean> {
    const [, repository, digest] = /^[^/]+\/([^@]+)@(.+)$/.exec(image) ?? [];
    const { status } = await this.registry(`${repository}/manifests/${digest}`, 'HEAD');
    return status === 200;
  }

  /** Digests of the images in the repository of a Skill that have a tag, sorted. */
  async images(skill: string, engine: EngineName): Promise<string[]> {
    const { text } = await this.registry('_catalog?n=1000');
    const { repositories } = JSON.parse(text) as { repositories: string[] };
    const name = new RegExp(`/${this.operator.namespace}/${skill.slice(0, 40)}-[0-9a-f]{8}-${engine}$`);
    const found = new Set<string>();
    for (const repository of repositories.filter((one) => name.test(one))) {
      const list = await this.registry(`${repository}/tags/list`);
      const tags = list.status === 200 ? ((JSON.parse(list.text) as { tags: string[] | null }).tags ?? []) : [];
      for (const tag of tags) {
        const { status, digest } = await this.registry(`${repository}/manifests/${tag}`, 'HEAD');
        if (status === 200) found.add(digest);
      }
    }
    return [...found].sort();
  }

  /** Keys of the image records of a Skill in the bucket. */
  async records(skill: string, engine: EngineName): Promise<string[]> {
    const objects = await listObjects(this.operator.info.s3, this.operator.bucket);
    const part = `/images/${this.operator.namespace}/${skill}-${engine}/`;
    return objects.map(({ key }) => key).filter((key) => key.includes(part));
  }

  /** The Jobs of a Skill, or of all. */
  async jobs(skill?: string): Promise<K8sObject[]> {
    const jobs = await this.k8s.list({ apiVersion: 'batch/v1', kind: 'Job', namespace: this.builds });
    const annotation = `${this.operator.namespace}/${skill}`;
    return jobs.filter(
      ({ metadata }) => skill === undefined || metadata.annotations?.['skills.tfrobot.io/skill'] === annotation,
    );
  }

  /** Number of Jobs without a verdict; the count of pods in their status follows a moment later. */
  async unfinishedJobs(): Promise<number> {
    return (await this.jobs()).filter((job) => !hasVerdict(job)).length;
  }

  /** All events about the Skills and sources of this stage. */
  async events(): Promise<K8sObject[]> {
    const { k8s, namespace } = this.operator;
    return await k8s.list({ apiVersion: 'events.k8s.io/v1', kind: 'Event', namespace });
  }

  job(name: string): Ref {
    return { apiVersion: 'batch/v1', kind: 'Job', name, namespace: this.builds };
  }

  /** The entries of the ledger. */
  async ledger(): Promise<{ skill: string; templateID?: string; image?: string; why: string }[]> {
    const maps = await this.k8s.list({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      namespace: this.operator.account.namespace,
      labelSelector: 'skills.tfrobot.io/ledger=true',
    });
    return maps.map(({ data }) => JSON.parse(data.entry));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#close();
  }
}

/** Starts the stubs, gives the operator its Secrets and settings, and starts it. */
export async function openByoStage(info: ClusterInfo, node: NodeInfo, options: ByoOptions = {}): Promise<ByoStage> {
  await using stack = new AsyncDisposableStack();
  const dir = mkdtempSync(join(tmpdir(), 'skill-operator-byo-'));
  stack.defer(() => rmSync(dir, { recursive: true, force: true }));
  const parts = await openParts(info, node, stack);
  const file = join(dir, 'config.yaml');
  writeFileSync(file, stringify(await settingsOf(parts, options)));
  const { args = [], ...rest } = options.operator ?? {};
  const flags = ['--config', file, '--leader-election=false', ...args];
  const account = (await options.through?.(parts.account)) ?? parts.account;
  const operator = stack.use(await startOperator(info, { account, args: flags, ...rest }));
  const all = stack.move();
  return new ByoStage(operator, parts, () => all.disposeAsync());
}

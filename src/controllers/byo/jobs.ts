import type { Job } from 'kubernetes-types/batch/v1.d.ts';
import type { Event, Pod } from 'kubernetes-types/core/v1.d.ts';
import { labelValue } from '../../api/names.ts';
import { CORE_EVENTS, JOBS, PODS, SECRETS } from '../../api/resources.ts';
import type { Skill } from '../../api/skill.ts';
import { waiting } from '../../base/errors.ts';
import { containersOf } from '../../build/classify.ts';
import type { BuildInput, ContextURLs } from '../../build/input.ts';
import { buildJob, buildSecret } from '../../build/manifest.ts';
import { BUILD_LABELS } from '../../build/names.ts';
import type { BuildSettings } from '../../build/settings.ts';
import { hasVerdict, newestPod } from '../../build/state.ts';
import { hasCode } from '../../kube/errors.ts';
import type { KubeClient } from '../../kube/rest.ts';
import type { KubeObject } from '../../kube/types.ts';

/** What is known of one attempt in the cluster. */
export interface JobView {
  job: Job | undefined;
  pods: Pod[];
  events: Event[];
  /** The end of the build container's log, once the Job has its verdict; undefined: it cannot be had. */
  log?: string | undefined;
}

const PAGE = 100;
/** The name label of the Job controller. */
const JOB_NAME = 'batch.kubernetes.io/job-name';

/** Enough for what Kaniko warns of; and, where lines are long, for the last ones. */
const LOG = { tailLines: 2000, limitBytes: 256 * 1024 };
const LOG_END = { tailLines: 40, limitBytes: 64 * 1024 };

type Api = Pick<KubeClient, 'get' | 'create' | 'patch' | 'delete' | 'listPage' | 'podLog'>;

/** Build Jobs in the build namespace: created suspended, given their Secret, then resumed; each step may be repeated. */
export class BuildJobs {
  readonly #api: Api;
  readonly #settings: BuildSettings;

  constructor(api: Api, settings: BuildSettings) {
    this.#api = api;
    this.#settings = settings;
  }

  /** The Job with its pods, with the events while nothing runs, and with the log when it is over. */
  async view(name: string, signal: AbortSignal): Promise<JobView> {
    const job = await this.#get(name, signal);
    if (!job) return { job: undefined, pods: [], events: [] };
    const pods = await this.#list<Pod & KubeObject>(PODS, { labelSelector: `${JOB_NAME}=${name}` }, signal);
    const names = [name, ...pods.map((pod) => pod.metadata.name)];
    const waits = !job.status?.succeeded && !job.status?.failed;
    const events = waits
      ? await Promise.all(
          names.map((one) =>
            this.#list<Event & KubeObject>(CORE_EVENTS, { fieldSelector: `involvedObject.name=${one}` }, signal),
          ),
        )
      : [];
    const log = hasVerdict(job) ? await this.#log(pods, signal) : undefined;
    return { job, pods, events: events.flat(), log };
  }

  /**
   * Starts an attempt, or takes up one that was started before under the same name.
   * Waiting `NameClash` when the name belongs to another Skill's Job, which cannot happen unless somebody made it by hand.
   */
  async start(input: BuildInput, urls: () => Promise<ContextURLs>, signal: AbortSignal): Promise<string> {
    const wanted = buildJob(input, this.#settings) as Job & KubeObject;
    const name = wanted.metadata.name;
    const job = (await this.#create(JOBS, wanted, signal)) ?? (await this.#get(name, signal));
    const uid = job?.metadata?.uid;
    if (!job || !uid || job.metadata?.labels?.[BUILD_LABELS.skillUID] !== labelValue(input.skill.uid)) {
      throw waiting('NameClash', `Job ${name} in namespace ${this.#settings.namespace} is not this Skill's; delete it`);
    }
    if (job.spec?.suspend) await this.resume(name, input, uid, urls, signal);
    return name;
  }

  /** Gives a suspended Job its Secret and lets it run. */
  async resume(
    name: string,
    input: BuildInput,
    uid: string,
    urls: () => Promise<ContextURLs>,
    signal: AbortSignal,
  ): Promise<void> {
    const { namespace } = this.#settings;
    // URLs of an interrupted start may be too old by now: the Secret is made anew.
    await this.#api.delete(SECRETS, namespace, name, {}, signal);
    await this.#create(SECRETS, buildSecret(input, this.#settings, uid, await urls()) as KubeObject, signal);
    const body = { metadata: { uid }, spec: { suspend: false } };
    await this.#api.patch(JOBS, namespace, name, { kind: 'merge', body, fieldManager: 'skill-operator-build' }, signal);
  }

  async cancel(name: string, signal: AbortSignal): Promise<void> {
    await this.#api.delete(JOBS, this.#settings.namespace, name, {}, signal);
  }

  /** Deletes every Job of that Skill, also one that no status names. */
  async cancelAll(skill: Skill, signal: AbortSignal): Promise<void> {
    const labelSelector = `${BUILD_LABELS.skillUID}=${labelValue(skill.metadata.uid ?? '')}`;
    const jobs = await this.#list<KubeObject>(JOBS, { labelSelector }, signal);
    for (const job of jobs) await this.cancel(job.metadata.name, signal);
  }

  /** Whether a pod of that Skill is still there: until it is gone, it may push. */
  async hasPods(skillUID: string, signal: AbortSignal): Promise<boolean> {
    const labelSelector = `${BUILD_LABELS.skillUID}=${labelValue(skillUID)}`;
    const pods = await this.#list<Pod & KubeObject>(PODS, { labelSelector }, signal);
    return pods.some(({ status }) => status?.phase !== 'Succeeded' && status?.phase !== 'Failed');
  }

  /** What the author's commands wrote. It only explains: where it cannot be had, the kubelet's shorter copy has to do. */
  async #log(pods: readonly (Pod & KubeObject)[], signal: AbortSignal): Promise<string | undefined> {
    const pod = newestPod(pods);
    if (!pod?.metadata?.name || !containersOf(pod).some(({ name, state }) => name === 'build' && state?.terminated)) {
      return undefined;
    }
    const { namespace } = this.#settings;
    const from = { resource: PODS, namespace, name: pod.metadata.name, container: 'build' };
    try {
      const log = await this.#api.podLog(from, LOG, signal);
      // A log of long lines was cut at its end, which says most.
      const isCut = Buffer.byteLength(log) >= LOG.limitBytes;
      return isCut ? `${log}\n${await this.#api.podLog(from, LOG_END, signal)}` : log;
    } catch (error) {
      if (signal.aborted) throw error;
      return undefined;
    }
  }

  async #get(name: string, signal: AbortSignal): Promise<Job | undefined> {
    return (await this.#api.get<KubeObject>(JOBS, this.#settings.namespace, name, signal)) as Job | undefined;
  }

  /** undefined: an object of that name is there already. */
  async #create<T extends KubeObject>(
    resource: typeof JOBS | typeof SECRETS,
    body: T,
    signal: AbortSignal,
  ): Promise<T | undefined> {
    try {
      return await this.#api.create(resource, this.#settings.namespace, body, signal);
    } catch (error) {
      if (hasCode(error, 409)) return undefined;
      throw error;
    }
  }

  async #list<T extends KubeObject>(
    resource: typeof JOBS | typeof PODS | typeof CORE_EVENTS,
    selector: { labelSelector?: string; fieldSelector?: string },
    signal: AbortSignal,
  ): Promise<T[]> {
    const scope = { namespace: this.#settings.namespace, ...selector };
    const page = await this.#api.listPage<T>(resource, scope, { limit: PAGE }, signal);
    return page.items;
  }
}

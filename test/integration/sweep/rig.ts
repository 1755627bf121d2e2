import { randomBytes } from 'node:crypto';
import type { Skill, SkillStatus } from '../../../src/api/skill.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { silentLogger } from '../../../src/base/log.ts';
import { createMetrics } from '../../../src/base/metrics.ts';
import { Pins } from '../../../src/controllers/pins.ts';
import { OperatorState } from '../../../src/controllers/sweep/state.ts';
import { Sweeper, type SweeperDeps } from '../../../src/controllers/sweep/sweeper.ts';
import type { EventInput } from '../../../src/kube/events.ts';
import type { Lister } from '../../../src/kube/pages.ts';
import type { KubeClient } from '../../../src/kube/rest.ts';
import { type KeySpace, keySpace, packageKeys } from '../../../src/store/keys.ts';
import type { BuiltPackage } from '../../../src/store/package.types.ts';
import { PackageStore } from '../../../src/store/packages.ts';
import { S3ObjectStore } from '../../../src/store/s3.ts';
import type { ClusterInfo } from '../../support/cluster-info.ts';
import { K8s, type K8sObject } from '../../support/k8s.ts';
import { createOperatorAccount, installCrds } from '../../support/operator-account.ts';
import { listObjects, makeBucket } from '../../support/s3.ts';
import { parseSamples } from '../../support/samples.ts';
import { directClient } from '../kube/setup.ts';

export const signal = new AbortController().signal;

/** A status that serves a stored package; `more` adds to the served version. */
export const serves = (built: BuiltPackage, more: object = {}): SkillStatus => ({
  observedGeneration: 1,
  served: {
    version: built.digest.slice(0, 12),
    digest: built.digest,
    manifestSHA256: built.manifestSHA256,
    commit: 'c'.repeat(40),
    runtime: 'prompt-only',
    files: built.fileCount,
    bytes: built.byteCount,
    ...more,
  },
});

/** The parts of the sweep on the real API server and the real store, with a namespace and an installation of their own. */
export interface Rig extends AsyncDisposable {
  api: KubeClient;
  k8s: K8s;
  /** The one whose Skills count; others of the cluster are left out. */
  namespace: string;
  /** Holds ConfigMap skill-operator-state. */
  home: string;
  bucket: string;
  installation: string;
  store: S3ObjectStore;
  space: KeySpace;
  packages: PackageStore;
  pins: Pins;
  state: OperatorState;
  /** Notes of the events about blocks. */
  notes: string[];
  sweeper(over?: Partial<SweeperDeps>): Sweeper;
  /** A Skill whose status is this one. */
  skill(name: string, status: SkillStatus): Promise<Skill>;
  setStatus(name: string, status: SkillStatus): Promise<void>;
  /** Keys below the root of the installation, sorted; `marks/clock` left out. */
  keys(): Promise<string[]>;
  stateMap(): Promise<K8sObject | undefined>;
  /** The value of a metric of the upkeep. */
  counted(action: string): Promise<number>;
}

export async function newRig(info: ClusterInfo, over: { bucket?: string } = {}): Promise<Rig> {
  await installCrds(info);
  const k8s = new K8s(info.kubeconfig);
  const [namespace, { namespace: home }, bucket] = await Promise.all([
    k8s.createNamespace('sweep'),
    createOperatorAccount(info),
    over.bucket ?? makeBucket(info.s3, 'sweep'),
  ]);
  const api = directClient();
  const installation = `i-${randomBytes(4).toString('hex')}`;
  const store = new S3ObjectStore({ ...info.s3, bucket });
  const space = keySpace('', installation);
  const metrics = createMetrics();
  const notes: string[] = [];
  const events = { record: (_: unknown, { reason, note }: EventInput) => void notes.push(`${reason}: ${note}`) };
  const state = new OperatorState({ api, namespace: home, clock: systemClock, logger: silentLogger, metrics, events });
  // The rules of a whole cluster, for the part of the shared one that is this rig's.
  const lister: Lister = { listPage: (resource, _all, page, s) => api.listPage(resource, { namespace }, page, s) };
  const pins = new Pins({ remember: () => false });
  const ref = (name: string) => ({ apiVersion: 'skills.tfrobot.io/v1alpha1', kind: 'Skill', name, namespace });
  const setStatus = async (name: string, status: SkillStatus) => {
    await k8s.patch(ref(name), { status }, 'status');
  };
  return {
    ...{ api, k8s, namespace, home, bucket, installation, store, space, pins, state, notes, setStatus },
    packages: new PackageStore(store, space),
    sweeper: (more = {}) =>
      new Sweeper({
        ...{ api: lister, store, space, pins, state, metrics, logger: silentLogger, graceMs: 0 },
        ledgerImages: () => new Set(),
        ...more,
      }),
    skill: async (name, status) => {
      const spec = {
        source: { marketplaceRef: { name: 'nobody' } },
        plugin: 'docs',
        path: `plugins/docs/skills/${name}`,
      };
      const { name: _, ...type } = ref(name);
      const { namespace: where, ...kind } = type;
      await k8s.apply({ ...kind, metadata: { name, namespace: where }, spec });
      await setStatus(name, status);
      return (await k8s.get(ref(name))) as unknown as Skill;
    },
    keys: async () => {
      const all = await listObjects(info.s3, bucket, space.root);
      return all.map(({ key }) => key.slice(space.root.length)).filter((key) => key !== 'marks/clock');
    },
    stateMap: () => k8s.get({ apiVersion: 'v1', kind: 'ConfigMap', name: 'skill-operator-state', namespace: home }),
    counted: async (action) => parseSamples(await metrics.render()).value('skill_operator_upkeep_total', { action }),
    [Symbol.asyncDispose]: async () => {
      store.close();
      await api.close();
      await k8s[Symbol.asyncDispose]();
    },
  };
}

/** The objects of a package, below the root of the installation and sorted. */
export function objectsOf({ space, namespace }: Rig, { digest, privateParts }: BuiltPackage): string[] {
  const keys = packageKeys(space, namespace, digest);
  const all = [keys.manifest, keys.tar, ...Object.keys(privateParts).map((name) => keys.privatePart(name))];
  return all.map((key) => key.slice(space.root.length)).sort();
}

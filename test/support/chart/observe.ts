import { readdirSync, readFileSync } from 'node:fs';
import { eventually } from '../eventually.ts';
import type { K8sObject } from '../k8s.ts';
import { type ChartStage, HOME, RELEASE, ROLLOUT_MS } from './stage.ts';

/** Who the controller is to the API server. */
export const ACCOUNT = `system:serviceaccount:${HOME}:${RELEASE}`;

/** Waits until some pod other than `old` leads and has nothing left to do; returns its name. */
export async function settledLeader(stage: ChartStage, skills: number, old = ''): Promise<string> {
  return await eventually(
    async () => {
      const pod = await stage.leader();
      if (pod === '' || pod === old) throw new Error(`the Lease is held by "${pod}"`);
      const metrics = await stage.metrics(pod);
      const passes = metrics.value('controller_runtime_reconcile_total', { controller: 'skill' });
      const waiting = metrics.value('workqueue_depth');
      if (passes < skills || waiting > 0) throw new Error(`${pod}: ${passes} passes over Skills, ${waiting} keys wait`);
      return pod;
    },
    { timeoutMs: ROLLOUT_MS, what: 'a leader that has looked at everything', intervalMs: 200 },
  );
}

/** Pid of Node in a pod's container, as this machine sees it. */
export function nodeProcessOf({ metadata }: K8sObject): number {
  const read = (pid: string, file: string): string => {
    try {
      return readFileSync(`/proc/${pid}/${file}`, 'utf8');
    } catch {
      return '';
    }
  };
  const found = readdirSync('/proc').filter(
    (pid) =>
      /^\d+$/.test(pid) &&
      read(pid, 'cmdline').startsWith('node\0dist/main.js\0') &&
      read(pid, 'cgroup').includes(`pod${metadata.uid}`),
  );
  if (found.length !== 1) throw new Error(`pod ${metadata.name} has ${found.length} processes of the operator`);
  return Number(found[0]);
}

/** A program for the operator's image that asks the API as the pod's own account, and prints the answer. */
const ASK = `
const account = '/var/run/secrets/kubernetes.io/serviceaccount';
const token = require('node:fs').readFileSync(account + '/token', 'utf8');
fetch('https://kubernetes.default.svc' + process.argv[1], { headers: { authorization: 'Bearer ' + token } })
  .then((answer) => answer.text())
  .then((text) => console.log(text));
`;

/** Container of a pod that reads a path of the API from inside the cluster. */
export const reader = (path: string): object => ({
  args: ['-e', ASK, path],
  env: [{ name: 'NODE_EXTRA_CA_CERTS', value: '/var/run/secrets/kubernetes.io/serviceaccount/ca.crt' }],
  resources: { limits: { memory: '256Mi' } },
});

/** `Kind name` of everything in a namespace that can be listed, but events; sorted. */
export async function contentOf({ k8s }: ChartStage, namespace: string): Promise<string[]> {
  const groups = JSON.parse((await k8s.api.request('GET', '/apis')).text) as {
    groups: { preferredVersion: { groupVersion: string } }[];
  };
  const versions = ['v1', ...groups.groups.map(({ preferredVersion }) => preferredVersion.groupVersion)];
  const found = new Set<string>();
  for (const version of versions) {
    const path = version === 'v1' ? '/api/v1' : `/apis/${version}`;
    const { resources } = JSON.parse((await k8s.api.request('GET', path)).text) as {
      resources: { name: string; kind: string; namespaced: boolean; verbs: string[] }[];
    };
    for (const { name, kind } of resources.filter((one) => one.namespaced && one.verbs.includes('list'))) {
      if (kind === 'Event') continue;
      const { text } = await k8s.api.request('GET', `${path}/namespaces/${namespace}/${name}`);
      const { items = [] } = JSON.parse(text) as { items?: K8sObject[] };
      for (const { metadata } of items) found.add(`${kind} ${metadata.name}`);
    }
  }
  return [...found].sort();
}

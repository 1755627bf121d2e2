import type { Job } from 'kubernetes-types/batch/v1.d.ts';
import type { Container, Event, Pod } from 'kubernetes-types/core/v1.d.ts';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { LAYOUT, PATHS } from '../../../src/build/arguments.ts';
import type { BuildInput } from '../../../src/build/input.ts';
import { buildJob, buildSecret } from '../../../src/build/manifest.ts';
import { BUILD_DEFAULTS, type BuildSettings } from '../../../src/build/settings.ts';
import { type BuildState, buildStateOf } from '../../../src/build/state.ts';
import { eventually } from '../../support/eventually.ts';
import { K8s } from '../../support/k8s.ts';
import { logsOf } from '../../support/pods.ts';

const { node, ...info } = inject('cluster');
const hex = (digit: string) => digit.repeat(64);

/**
 * The Job as the operator renders it, on a real kubelet with a real Kaniko. Only the two steps of our own image are replaced by shell lines,
 * which keep user, mounts and rights of the steps they stand for.
 */
describe.skipIf(!node)('a build Job on the node', () => {
  if (!node) return;
  let k8s: K8s;
  let namespace: string;
  let settings: BuildSettings;
  let number = 0;

  beforeAll(async () => {
    k8s = new K8s(info.kubeconfig);
    namespace = await k8s.createNamespace('builds', { 'pod-security.kubernetes.io/enforce': 'baseline' });
    const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'skill-builder', namespace } };
    const secret = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'registry-push', namespace },
      type: 'kubernetes.io/dockerconfigjson',
      stringData: { '.dockerconfigjson': node.registry.pushSecret },
    };
    await k8s.apply([account, secret] as never);
    const small = { requests: {}, limits: { memory: '256Mi', 'ephemeral-storage': '256Mi' } };
    settings = {
      ...BUILD_DEFAULTS,
      installation: 'e2e',
      namespace,
      operatorImage: node.images.busybox,
      builderImage: node.images.kaniko,
      registry: { host: node.registry.address, prefix: 'skills', insecure: true, pushSecret: 'registry-push' },
      baseImages: { insecure: [node.baseRegistry.address] },
      resources: {
        fetch: small,
        push: small,
        build: { requests: {}, limits: { memory: '512Mi', 'ephemeral-storage': '1Gi' } },
      },
      network: { egress: [] },
    };
  });
  afterAll(async () => {
    await k8s.delete({ apiVersion: 'v1', kind: 'Namespace', name: namespace });
    await k8s[Symbol.asyncDispose]();
  });

  const shell = (container: Container | undefined, script: string, mounts: Container['volumeMounts'] = []) => {
    if (!container) throw new Error('the Job lacks a container');
    container.command = ['sh', '-c', script];
    delete container.args;
    container.volumeMounts = [...(container.volumeMounts ?? []), ...mounts];
  };

  /** Renders a Job and puts shell lines in place of fetch and push. */
  function render(input: BuildInput, given: BuildSettings, push: string): Job {
    const job = buildJob(input, given);
    const spec = job.spec?.template.spec;
    const fetch = `cp -L /given/Dockerfile ${PATHS.dockerfileDir}/ && cp -L /given/hello.txt ${PATHS.context}/ && chmod 0644 ${PATHS.context}/*`;
    shell(spec?.initContainers?.[0], fetch, [{ name: 'given', mountPath: '/given' }]);
    shell(spec?.containers[0], push);
    spec?.volumes?.push({ name: 'given', configMap: { name: job.metadata?.name as string } });
    return job;
  }

  /** Everything that the operator sees of one build. */
  class Build {
    readonly job: Job;
    readonly ref: { apiVersion: string; kind: string; namespace: string; name: string };
    readonly given: BuildSettings;

    constructor(job: Job, given: BuildSettings) {
      this.job = job;
      this.given = given;
      this.ref = { apiVersion: 'batch/v1', kind: 'Job', namespace, name: job.metadata?.name as string };
    }

    async pods(): Promise<Pod[]> {
      const labelSelector = `batch.kubernetes.io/job-name=${this.ref.name}`;
      return (await k8s.list({ apiVersion: 'v1', kind: 'Pod', namespace, labelSelector })) as never;
    }

    async state(later = 0): Promise<BuildState> {
      const pods = await this.pods();
      const events = (await k8s.list({ apiVersion: 'v1', kind: 'Event', namespace })) as unknown as Event[];
      const job = (await k8s.get(this.ref)) as unknown as Job;
      return buildStateOf({ job, pods, events, now: Date.now() + later, settings: this.given });
    }

    /** Waits until the state has these members. */
    async becomes(expected: Partial<Record<string, unknown>>, later = 0): Promise<BuildState> {
      const what = `the state ${JSON.stringify(expected)}`;
      return await eventually(
        async () => {
          const state = await this.state(later);
          expect(state).toMatchObject(expected);
          return state;
        },
        { timeoutMs: 120_000, what, intervalMs: 200 },
      );
    }

    async log(container: string): Promise<string> {
      const [pod] = await this.pods();
      return await logsOf(k8s, { name: pod?.metadata?.name ?? '', namespace }, container);
    }
  }

  /** Creates the Job suspended, then its Secret, then resumes it. */
  async function start(
    dockerfile: readonly string[],
    over: Partial<BuildSettings> = {},
    push = 'exit 21',
  ): Promise<Build> {
    const given = { ...settings, ...over };
    const object = { sha256: hex('1'), size: 1 };
    const input: BuildInput = {
      skill: { namespace: 'team-a', name: `skill-${++number}`, uid: `uid-${number}` },
      engine: 'e2b',
      digest: hex('d'),
      inputHash: hex('b'),
      attempt: 1,
      context: { tar: object, dockerfile: object },
    };
    const build = new Build(render(input, given, push), given);
    const data = { Dockerfile: `${dockerfile.join('\n')}\n`, 'hello.txt': 'hello\n' };
    const [job] = await k8s.apply([
      build.job,
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: build.ref.name, namespace }, data },
    ] as never);
    expect(await build.state()).toEqual({ phase: 'Suspended' });
    const urls = { tar: 'https://s3/p', dockerfile: 'https://s3/d' };
    await k8s.apply(buildSecret(input, given, job?.metadata.uid ?? '', urls) as never);
    await k8s.patch(build.ref, { spec: { suspend: false } });
    return build;
  }

  const from = (...lines: string[]) => [`FROM ${node.images.busybox}`, ...lines];

  test('builds an image that push can read, with what the Dockerfile wrote anywhere', async () => {
    const layout = `${PATHS.layout}/${LAYOUT}`;
    const push = `id -u; test -r ${PATHS.credential}/config.json && echo credential
      ls ${PATHS.urls} 2>/dev/null
      for blob in ${layout}/blobs/sha256/*; do test -r $blob || echo unreadable; tar -tvzf $blob 2>/dev/null; done > ${PATHS.work}/files
      grep -E 'greeting|built' ${PATHS.work}/files | sed -E 's/ +[0-9]+ .* / /' | sort -k3
      printf '{"digest":"%s","size":7}' "$(grep -o 'sha256:[0-9a-f]*' ${layout}/index.json)" > /dev/termination-log`;
    const build = await start(
      from(
        'WORKDIR /workspace',
        'COPY hello.txt /workspace/greeting',
        'COPY --chown=1000:1000 hello.txt /build/greeting2',
        'RUN mkdir -p /out && cp greeting /out/built && cp greeting /build/built2 && cp greeting /tmp/built3',
      ),
      {},
      push,
    );
    const state = await build.becomes({ phase: 'Succeeded', size: 7 });
    expect(state).toMatchObject({ digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/), warnings: [] });
    expect((await build.log('push')).trim().split('\n')).toMatchInlineSnapshot(`
      [
        "0",
        "credential",
        "-rw-r--r-- 0/0 build/built2",
        "-rw-r--r-- 1000/1000 build/greeting2",
        "-rw-r--r-- 0/0 out/built",
        "-rw-r--r-- 0/0 tmp/built3",
        "-rw-r--r-- 0/0 workspace/greeting",
      ]
    `);
  });

  test('gives a RUN nothing that is worth reading', async () => {
    const build = await start(
      from(
        "RUN echo token: $(ls /var/run/secrets 2>/dev/null | wc -l); echo files: $(find / -xdev -name config.json -o -xdev -name 'package.tar' 2>/dev/null | wc -l)",
        'RUN env | cut -d= -f1 | sort | tr "\\n" " "; cat /proc/1/environ | tr "\\0" "\\n" | grep -ciE "secret|token|password|key=" || true',
        'RUN echo x > /kaniko/skill/context/hello.txt || echo read-only',
      ),
      {},
      'exit 20',
    );
    await build.becomes({ phase: 'Failed', class: 'Push' });
    const log = await build.log('build');
    expect(log).toContain('token: 0');
    expect(log).toContain('files: 0');
    expect(log).toContain('read-only');
    const [pod] = await build.pods();
    expect(JSON.stringify(pod?.spec)).not.toContain(node.registry.password);
  });

  test.each<[string, () => string[], object]>([
    [
      'a RUN that ends with 42',
      () => from('RUN echo about to fail; exit 42'),
      { class: 'User', reason: 'BuildCommandFailed' },
    ],
    ['a RUN that ends with 1', () => from('RUN exit 1'), { class: 'User', reason: 'BuildCommandFailed' }],
    ['a Dockerfile that is none', () => from('RNU x'), { class: 'User', reason: 'BuildFailed' }],
    ['a COPY of nothing', () => from('COPY missing.txt /'), { class: 'User', reason: 'BuildFailed' }],
    [
      'a base image that is not there',
      () => [`FROM ${node.baseRegistry.address}/none:1`],
      { class: 'User', reason: 'BaseImageRefused' },
    ],
    [
      'a base registry that asks for a password',
      () => [`FROM ${node.registry.address}/private:1`],
      { class: 'User', reason: 'BaseImageRefused' },
    ],
    [
      'a base registry that is down',
      () => [`FROM ${node.hostAddress}:1/down:1`],
      { class: 'Infra', reason: 'BaseImageUnavailable' },
    ],
    ['a RUN that takes all memory', () => from('RUN tail /dev/zero'), { class: 'Memory', reason: 'BuildOutOfMemory' }],
  ])('tells the reason of a failure: %s', async (_name, dockerfile, expected) => {
    const build = await start(dockerfile(), {
      baseImages: { insecure: [node.baseRegistry.address, `${node.hostAddress}:1`] },
    });
    const state = await build.becomes({ phase: 'Failed' });
    expect(state).toMatchObject(expected);
    expect(state).toHaveProperty('logTail');
  });

  test('keeps the end of the log of a failed RUN', async () => {
    const build = await start(from('RUN echo the reason; exit 3'));
    expect(await build.becomes({ phase: 'Failed' })).toMatchObject({ logTail: expect.stringContaining('the reason') });
  });

  test('ends at its deadline', async () => {
    const deadlines = { ...BUILD_DEFAULTS.deadlines, pendingSeconds: 19, activeSeconds: 1 };
    const build = await start(from('RUN sleep 600'), { deadlines });
    expect(await build.becomes({ phase: 'Failed' })).toMatchObject({ class: 'Timeout', reason: 'BuildTimeout' });
    // The kubelet ended it, not the Job controller, which would have taken the log along.
    expect(await build.log('build')).toContain('sleep 600');
  });

  test('is ended when it fills the disk', async () => {
    const small = { requests: {}, limits: { memory: '512Mi', 'ephemeral-storage': '64Mi' } };
    const resources = { fetch: small, build: small, push: small };
    const build = await start(from('RUN dd if=/dev/zero of=/full bs=1M count=200 && sleep 600'), { resources });
    expect(await build.becomes({ phase: 'Failed' })).toMatchObject({ class: 'Disk', reason: 'BuildOutOfDisk' });
  });

  const LATER = 301_000;

  test('waits for a node with room, and fails when its time is up', async () => {
    const build = await start(from(), { placement: { nodeSelector: { pool: 'none' } } });
    await build.becomes({ phase: 'Pending', reason: 'BuildUnschedulable' });
    await build.becomes({ phase: 'Failed', class: 'Capacity' }, LATER);
  });

  test('says which image cannot be pulled', async () => {
    const build = await start(from(), { builderImage: `${node.baseRegistry.address}/none@sha256:${hex('0')}` });
    const state = await build.becomes({ phase: 'Pending', reason: 'BuildImagePullFailed' });
    expect(state).toMatchObject({ message: expect.stringContaining(`${node.baseRegistry.address}/none`) });
    await build.becomes({ phase: 'Failed', class: 'Setup' }, LATER);
  });

  test('says which Secret is missing', async () => {
    const registry = { ...settings.registry, pushSecret: 'forgotten' };
    const build = await start(from(), { registry });
    await build.becomes({
      phase: 'Pending',
      reason: 'BuildPodNotStarted',
      message: expect.stringContaining('"forgotten"'),
    });
  });

  test('says that the namespace takes no more pods', async () => {
    const quota = {
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: { name: 'none', namespace },
      spec: { hard: { pods: '0' } },
    };
    await k8s.apply(quota as never);
    const ref = { apiVersion: 'v1', kind: 'ResourceQuota', name: 'none', namespace };
    await k8s.waitFor(ref, ({ status }) => status?.hard !== undefined);
    try {
      const build = await start(from());
      const state = await build.becomes({ phase: 'Pending', reason: 'BuildPodForbidden' });
      expect(state).toMatchObject({ message: expect.stringContaining('exceeded quota') });
    } finally {
      await k8s.delete(ref);
    }
  });
});

import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { layerOf, writeImage } from '../../cluster/node/image.ts';
import { pushImage } from '../../cluster/node/push.ts';
import { createRepository } from '../../support/git.ts';
import { K8s } from '../../support/k8s.ts';
import { type ContainerStatus, logsOf, podNamespace, runPod, waitForPod } from '../../support/pods.ts';

const { node, ...info } = inject('cluster');
const { signal } = new AbortController();

describe.skipIf(!node)('the node', () => {
  if (!node) return;
  let k8s: K8s;
  let namespace: string;
  // Its certificate is made for the API server, which this test is not.
  const kubelet = new Agent({ connect: { rejectUnauthorized: false } });
  beforeAll(async () => {
    k8s = new K8s(info.kubeconfig);
    namespace = await podNamespace(k8s, 'node');
  });
  afterAll(async () => {
    await k8s.delete({ apiVersion: 'v1', kind: 'Namespace', name: namespace });
    await kubelet.close();
    await k8s[Symbol.asyncDispose]();
  });
  const sh = (name: string, script: string, more: object = {}) =>
    runPod(k8s, { name, namespace, image: node.images.busybox, command: ['sh', '-c', script], ...more });

  test('runs a pod to its end and gives its log and exit code through the API', async () => {
    const good = await sh('good', 'echo hello from $(hostname)');
    expect(good.log).toBe('hello from good\n');
    const bad = await sh('bad', 'echo to the error stream >&2; exit 7');
    expect(bad.pod.status.phase).toBe('Failed');
    expect(bad.pod.status.containerStatuses[0].state.terminated).toMatchObject({ exitCode: 7, reason: 'Error' });
    expect(bad.log).toBe('to the error stream\n');
  });

  test('runs a Job to completion and removes it after its time', async () => {
    const ref = { apiVersion: 'batch/v1', kind: 'Job', name: 'once', namespace };
    const container = { name: 'main', image: node.images.busybox, command: ['sh', '-c', 'echo done'] };
    await k8s.apply({
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name: 'once', namespace },
      spec: {
        suspend: true,
        backoffLimit: 0,
        ttlSecondsAfterFinished: 5,
        template: { spec: { restartPolicy: 'Never', containers: [container] } },
      },
    });
    await k8s.waitCondition(ref, 'Suspended');
    await k8s.patch(ref, { spec: { suspend: false } });
    await k8s.waitCondition(ref, 'Complete');
    const [pod] = await k8s.list({ apiVersion: 'v1', kind: 'Pod', namespace, labelSelector: 'job-name=once' });
    expect(await logsOf(k8s, { name: pod?.metadata.name ?? '', namespace })).toBe('done\n');
    await k8s.waitGone(ref);
  });

  test('leads a Service address to a pod, from pods and from this machine', async () => {
    const server = { name: 'server', namespace };
    const [service] = await k8s.apply({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: server,
      spec: { selector: { app: 'server' }, ports: [{ port: 80, targetPort: 8080 }] },
    });
    await k8s.apply({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { ...server, labels: { app: 'server' } },
      spec: {
        containers: [
          {
            name: 'main',
            image: node.images.busybox,
            command: ['sh', '-c', 'mkdir /www && echo served >/www/index.html && exec httpd -f -p 8080 -h /www'],
            readinessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 1 },
          },
        ],
      },
    });
    await k8s.waitCondition({ apiVersion: 'v1', kind: 'Pod', ...server }, 'Ready');
    const address = service?.spec.clusterIP as string;
    const client = await sh(
      'client',
      `for i in 1 2 3 4 5; do timeout 5 wget -q -O - http://${address}/ && exit; sleep 1; done`,
    );
    expect(client.log).toBe('served\n');
    const { body } = await request(`http://${address}/`, { signal });
    expect(await body.text()).toBe('served\n');
  });

  test('lets pods reach the API server by its Service, S3, Git and registries, and nothing else', async () => {
    const repository = await createRepository(info.git.root, 'node-reach');
    await repository.commit({ a: 'x' });
    const { log } = await sh(
      'reach',
      `try() { echo "$1: $(timeout 5 wget -q -O - "$2" 2>&1 | head -c 200 | tr '\\n' ' ')"; }
       open() { nc -w 3 "$2" "$3" </dev/null >/dev/null 2>&1 && echo "$1: open" || echo "$1: shut"; }
       open api "$KUBERNETES_SERVICE_HOST" "$KUBERNETES_SERVICE_PORT"
       try git ${info.git.httpUrl}/node-reach.git/HEAD
       try base http://${node.baseRegistry.address}/v2/_catalog
       try push http://${node.registry.address}/v2/_catalog
       try s3 ${info.s3.endpoint}/
       open outside 192.0.2.1 443`,
    );
    expect(log.split('\n')).toEqual([
      'api: open',
      'git: ref: refs/heads/main ',
      expect.stringMatching(/^base: \{"repositories":\[.*"busybox"/),
      expect.stringMatching(/^push: .*401 Unauthorized/),
      expect.stringMatching(/^s3: .*403 Forbidden/),
      'outside: shut',
      '',
    ]);
  });

  test('gives nothing away at the kubelet without a credential', async () => {
    const { statusCode, body } = await kubelet.request({
      origin: `https://${node.address}:10250`,
      path: '/pods',
      method: 'GET',
    });
    await body.dump();
    expect(statusCode).toBe(401);
  });

  test('pulls from the registry of built images with the credential alone', async () => {
    const layout = mkdtempSync(join(info.runDir, 'image-'));
    await writeImage(layout, layerOf([{ path: 'hello', text: 'hello\n' }]), { Cmd: ['/hello'] }, signal);
    const { address, username, password, pushSecret } = node.registry;
    await expect(pushImage(layout, { address }, 'node/hello', signal)).rejects.toThrow('answers 401');
    const image = await pushImage(layout, { address, username, password }, 'node/hello', signal);
    await k8s.apply({
      apiVersion: 'v1',
      kind: 'Secret',
      type: 'kubernetes.io/dockerconfigjson',
      metadata: { name: 'registry', namespace },
      stringData: { '.dockerconfigjson': pushSecret },
    });
    const pod = (name: string, more: object) => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace },
      spec: { restartPolicy: 'Never', containers: [{ name: 'main', image }], ...more },
    });
    await k8s.apply(pod('without', {}));
    const refused = ({ state }: ContainerStatus) => /ErrImagePull|ImagePullBackOff/.test(state?.waiting?.reason ?? '');
    await waitForPod(k8s, { name: 'without', namespace }, refused);
    await k8s.apply(pod('with', { imagePullSecrets: [{ name: 'registry' }] }));
    // The image holds no program: that a start was tried at all shows that it was pulled.
    const tried = ({ state }: ContainerStatus) => state?.terminated?.reason === 'StartError';
    await waitForPod(k8s, { name: 'with', namespace }, tried);
  });

  test('ends a container that takes more memory than it may', async () => {
    const resources = { limits: { memory: '16Mi' } };
    const { pod } = await sh('hungry', 'tail -c 100000000 /dev/zero', { resources });
    expect(pod.status.containerStatuses[0].state.terminated).toMatchObject({ reason: 'OOMKilled', exitCode: 137 });
  });
});

import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { layerOf, writeImage } from '../../cluster/node/image.ts';
import { pushImage } from '../../cluster/node/push.ts';
import { createRepository } from '../../support/git.ts';
import { K8s } from '../../support/k8s.ts';
import { logsOf, podNamespace, runPod, waitForPod } from '../../support/pods.ts';

const { node, ...info } = inject('cluster');
const { signal } = new AbortController();

describe.skipIf(!node)('the node', () => {
  if (!node) return;
  let k8s: K8s;
  let namespace: string;
  beforeAll(async () => {
    k8s = new K8s(info.kubeconfig);
    namespace = await podNamespace(k8s, 'node');
  });
  afterAll(async () => {
    await k8s.delete({ apiVersion: 'v1', kind: 'Namespace', name: namespace });
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
      `for i in 1 2 3 4 5; do wget -q -T 5 -O - http://${address}/ && exit; sleep 1; done`,
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
      `try() { echo "$1: $(wget -q -T 5 -O - "$2" 2>&1 | head -c 200 | tr '\\n' ' ')"; }
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

  test("refuses what a pod asks of the kubelet, and a pod's token is worth nothing", async () => {
    const token = '/var/run/secrets/kubernetes.io/serviceaccount/token';
    const { log } = await sh(
      'curious',
      `printf 'GET /pods HTTP/1.0\\r\\nAuthorization: Bearer %s\\r\\n\\r\\n' "$(cat ${token})" >/tmp/ask
       openssl() { ssl_client -s3 3<&0; }
       for with in "" "Authorization: Bearer $(cat ${token})"; do
         wget -T 5 -O - --header "$with" --no-check-certificate https://${node.address}:10250/pods 2>&1 | grep -o 'HTTP/1.1 [0-9]*\\|40[0-9] [A-Z][a-z]*' || echo refused
       done`,
    );
    expect(log).not.toContain('"items"');
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
    await k8s.apply([pod('with', { imagePullSecrets: [{ name: 'registry' }] }), pod('without', {})]);
    // The image holds no program: that it is started at all shows that it was pulled.
    await waitForPod(k8s, { name: 'with', namespace }, ({ state }) => state?.terminated?.reason === 'StartError');
    await waitForPod(k8s, { name: 'without', namespace }, ({ state }) =>
      /PullBack|ErrImage/.test(state?.waiting?.reason),
    );
  });

  test('ends a container that takes more memory than it may', async () => {
    const resources = { limits: { memory: '16Mi' } };
    const { pod } = await sh('hungry', 'tail -c 100000000 /dev/zero', { resources });
    expect(pod.status.containerStatuses[0].state.terminated).toMatchObject({ reason: 'OOMKilled', exitCode: 137 });
  });
});

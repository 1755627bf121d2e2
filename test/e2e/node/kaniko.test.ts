import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { K8s } from '../../support/k8s.ts';
import { logsOf, podNamespace } from '../../support/pods.ts';

const { node, ...info } = inject('cluster');
const CAPABILITIES = ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'SETGID', 'SETUID', 'SETFCAP', 'KILL'];

describe.skipIf(!node)('Kaniko on the node', () => {
  if (!node) return;
  let k8s: K8s;
  let namespace: string;
  beforeAll(async () => {
    k8s = new K8s(info.kubeconfig);
    namespace = await podNamespace(k8s, 'kaniko');
  });
  afterAll(async () => {
    await k8s.delete({ apiVersion: 'v1', kind: 'Namespace', name: namespace });
    await k8s[Symbol.asyncDispose]();
  });

  const mount = (name: string, mountPath: string) => ({ name, mountPath });
  const builder = {
    name: 'build',
    image: node.images.kaniko,
    args: [
      '--context=dir:///workspace',
      '--dockerfile=/build/Dockerfile',
      '--no-push',
      '--no-push-cache',
      '--oci-layout-path=/out/image',
      '--digest-file=/out/digest',
      '--snapshot-mode=redo',
      '--ignore-path=/product_uuid',
      '--force',
      '--log-format=text',
      `--insecure-registry=${node.baseRegistry.address}`,
    ],
    securityContext: {
      runAsUser: 0,
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'], add: CAPABILITIES },
    },
    volumeMounts: [mount('context', '/workspace'), mount('dockerfile', '/build'), mount('out', '/out')],
  };

  /** A Job whose build is followed by a look at what it made. */
  const job = (name: string, look: string) => ({
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name, namespace },
    spec: {
      backoffLimit: 0,
      template: {
        spec: {
          restartPolicy: 'Never',
          automountServiceAccountToken: false,
          securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
          initContainers: [
            {
              name: 'fetch',
              image: node.images.busybox,
              command: ['sh', '-c', 'cp -L /given/Dockerfile /build/ && cp -L /given/hello.txt /workspace/'],
              volumeMounts: [mount('given', '/given'), mount('context', '/workspace'), mount('dockerfile', '/build')],
            },
            builder,
          ],
          containers: [
            {
              name: 'look',
              image: node.images.busybox,
              command: ['sh', '-c', look],
              volumeMounts: [mount('out', '/out')],
            },
          ],
          volumes: [
            { name: 'given', configMap: { name } },
            ...['context', 'dockerfile', 'out'].map((volume) => ({ name: volume, emptyDir: {} })),
          ],
        },
      },
    },
  });

  async function build(name: string, dockerfile: readonly string[], look: string, condition: string) {
    const data = { Dockerfile: `${dockerfile.join('\n')}\n`, 'hello.txt': 'hello\n' };
    await k8s.apply([{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace }, data }, job(name, look)]);
    const ref = { apiVersion: 'batch/v1', kind: 'Job', name, namespace };
    await k8s.waitFor(
      ref,
      ({ status }) => status?.conditions?.some(({ type }: { type: string }) => type === condition),
      { timeoutMs: 120_000, what: `Job ${name} ${condition}` },
    );
    const [pod] = await k8s.list({ apiVersion: 'v1', kind: 'Pod', namespace, labelSelector: `job-name=${name}` });
    const podRef = { name: pod?.metadata.name ?? '', namespace };
    return { pod, log: (container: string) => logsOf(k8s, podRef, container) };
  }

  test('builds from a base image with COPY and RUN, without privileges, where Pod Security baseline is enforced', async () => {
    const look = `cat /out/digest; echo
      grep -o 'sha256:[0-9a-f]*' /out/image/index.json
      for blob in /out/image/blobs/sha256/*; do tar -tzf $blob 2>/dev/null; done | grep -E 'greeting|made-by-run' | sort`;
    const dockerfile = [
      `FROM ${node.images.busybox}`,
      'COPY hello.txt /greeting',
      'RUN id -u > /made-by-run && chown 1000:1000 /made-by-run && cat /greeting',
    ];
    const { log } = await build('good', dockerfile, look, 'Complete');
    expect(await log('build')).toContain('hello');
    const [digest = '', index = '', ...files] = (await log('look')).trim().split('\n');
    expect(digest).toMatch(/^sha256:[0-9a-f]{64}$/);
    expect(index).toBe(digest);
    expect(files.map((file) => file.replace(/^\//, ''))).toEqual(['greeting', 'made-by-run']);
  });

  test('gives a RUN no credential, no privilege and no way out', async () => {
    const dockerfile = [
      `FROM ${node.images.busybox}`,
      'RUN echo "secrets: $(ls /var/run/secrets 2>/dev/null | wc -l)" && echo "caps: $(grep CapEff /proc/self/status)"',
      'RUN nc -w 3 192.0.2.1 443 </dev/null && echo "way out: yes" || echo "way out: no"',
    ];
    const { log } = await build('nosy', dockerfile, 'true', 'Complete');
    const text = await log('build');
    expect(text).toContain('secrets: 0');
    // CHOWN, DAC_OVERRIDE, FOWNER, KILL, SETGID, SETUID, SETFCAP: bits 0, 1, 3, 5, 6, 7, 31.
    expect(text).toMatch(/caps: CapEff:\s+00000000800000eb/);
    expect(text).toContain('way out: no');
  });

  test('fails with the exit code of the RUN that failed', async () => {
    const dockerfile = [`FROM ${node.images.busybox}`, 'RUN echo about to fail; exit 42'];
    const { pod, log } = await build('broken', dockerfile, 'true', 'Failed');
    const [, status] = pod?.status.initContainerStatuses ?? [];
    expect(status).toMatchObject({ name: 'build', state: { terminated: { exitCode: 42, reason: 'Error' } } });
    expect(await log('build')).toContain('about to fail');
  });
});

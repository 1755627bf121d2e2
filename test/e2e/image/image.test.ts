import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { layerOf, writeImage } from '../../cluster/node/image.ts';
import { pushImage } from '../../cluster/node/push.ts';
import { contextEntries, operatorBase, operatorBuildBase, operatorImage } from '../../support/image.ts';
import { K8s } from '../../support/k8s.ts';
import { podNamespace, runPod } from '../../support/pods.ts';

const { node, ...info } = inject('cluster');
const { signal } = new AbortController();
const say = (line: string) => process.stderr.write(`[operator image] ${line}\n`);
const MAKE_MS = 20 * 60_000;
const BUILD_MS = 10 * 60_000;

/** A user id as OpenShift gives it. */
const SOME_USER = 1_000_660_000;
const LOCKED = {
  runAsUser: SOME_USER,
  runAsGroup: 0,
  runAsNonRoot: true,
  readOnlyRootFilesystem: true,
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
  seccompProfile: { type: 'RuntimeDefault' },
};

/** Prints what a container of the image can do, as one line of JSON. */
const LOOK = `
const { execFileSync, spawnSync } = require('node:child_process');
const { writeFileSync } = require('node:fs');
const run = (file, ...args) => { const { stdout, stderr, status } = spawnSync(file, args, { encoding: 'utf8' }); return { status, text: (stdout + stderr).trim() }; };
const first = (file, ...args) => run(file, ...args).text.split('\\n')[0];
const refused = (path) => { try { writeFileSync(path, ''); return 'written'; } catch (error) { return error.code; } };
const help = run('node', 'dist/main.js', '--help');
console.log(JSON.stringify({
  cwd: process.cwd(), user: process.getuid(), home: process.env.HOME, environment: process.env.NODE_ENV,
  programs: [first('node', '--version'), first('git', '--version'), first('skopeo', '--version'), first('tini', '--version'), first('ssh', '-V')],
  named: run('ssh', '-G', 'example.com').status, account: first('getent', 'passwd', String(process.getuid())),
  help: help.text.split('\\n')[0], helpStatus: help.status, jobs: run('node', 'dist/jobs.js', '--help').status,
  root: refused('/app/x'), temporary: refused('/tmp/x'),
  parent: require('node:fs').readFileSync('/proc/1/comm', 'utf8').trim(),
}));
`;

describe.skipIf(!node)('the operator’s image', () => {
  if (!node) return;
  let k8s: K8s;
  let namespace: string;
  const images: Record<string, string> = {};

  const pod = async (name: string, image: string, container: object, spec: object = {}) =>
    await runPod(k8s, {
      name,
      namespace,
      image,
      container: { securityContext: LOCKED, volumeMounts: [{ name: 'tmp', mountPath: '/tmp' }], ...container },
      spec: { automountServiceAccountToken: false, volumes: [{ name: 'tmp', emptyDir: {} }], ...spec },
    });

  beforeAll(async () => {
    k8s = new K8s(info.kubeconfig);
    namespace = await podNamespace(k8s, 'image', 'restricted');
    const { layout } = await operatorImage(say, signal);
    images.assembled = await pushImage(layout, node.baseRegistry, 'skill-operator', signal);
  }, MAKE_MS);

  afterAll(async () => {
    await k8s.delete({ apiVersion: 'v1', kind: 'Namespace', name: namespace });
    await k8s[Symbol.asyncDispose]();
  });

  /** Builds the Dockerfile with Kaniko and gives the image a name in the registry of base images. */
  async function build(): Promise<string> {
    const scratch = mkdtempSync(join(tmpdir(), 'skill-operator-context-'));
    try {
      const base = await operatorBase(say, signal);
      await writeImage(scratch, layerOf(contextEntries()), {}, signal, base);
      const context = await pushImage(scratch, node?.baseRegistry ?? { address: '' }, 'skill-operator-context', signal);
      const target = node?.baseRegistry ?? { address: '' };
      const push = async (layout: string, name: string) => await pushImage(layout, target, name, signal);
      const bases = {
        BASE: await push(base, 'node'),
        BUILD_BASE: await push(await operatorBuildBase(say, signal), 'node-build'),
      };
      return await kaniko(context, bases);
    } finally {
      rmSync(scratch, { recursive: true, force: true });
    }
  }

  async function kaniko(context: string, args: Record<string, string>): Promise<string> {
    const address = node?.baseRegistry.address ?? '';
    const destination = `${address}/skill-operator:built`;
    const mounts = [{ name: 'context', mountPath: '/kaniko/context' }];
    const copy = {
      name: 'context',
      image: context,
      command: ['cp', '-a', '/context/.', '/kaniko/context/'],
      volumeMounts: mounts,
    };
    const builders = await podNamespace(k8s, 'image-build');
    const began = performance.now();
    const { pod: done, log } = await runPod(k8s, {
      name: 'build',
      namespace: builders,
      image: node?.images.kaniko ?? '',
      container: {
        args: [
          '--context=dir:///kaniko/context',
          '--dockerfile=/kaniko/context/Dockerfile',
          `--destination=${destination}`,
          `--insecure-registry=${address}`,
          '--snapshot-mode=redo',
          '--ignore-path=/product_uuid',
          '--force',
          '--log-format=text',
          ...Object.entries(args).map(([name, value]) => `--build-arg=${name}=${value}`),
        ],
        volumeMounts: mounts,
      },
      spec: {
        initContainers: [copy],
        volumes: [{ name: 'context', emptyDir: {} }],
        automountServiceAccountToken: false,
      },
      timeoutMs: BUILD_MS,
    });
    await k8s.delete({ apiVersion: 'v1', kind: 'Namespace', name: builders });
    expect(done.status.phase, log.slice(-4000)).toBe('Succeeded');
    say(`Kaniko built the Dockerfile in ${((performance.now() - began) / 1000).toFixed(0)} s`);
    return destination;
  }

  /** What every form of the image must be able to do under any user id with nothing but /tmp to write. */
  async function check(name: string, image: string): Promise<void> {
    const { log } = await pod(`${name}-look`, image, { args: ['-e', LOOK] });
    expect(JSON.parse(log), log).toEqual({
      cwd: '/app',
      user: SOME_USER,
      home: '/tmp',
      environment: 'production',
      programs: [
        process.version,
        expect.stringMatching(/^git version 2\./),
        expect.stringMatching(/^skopeo version 1\./),
        expect.stringMatching(/^tini version 0\./),
        expect.stringMatching(/^OpenSSH_/),
      ],
      named: 0,
      account: `operator:x:${SOME_USER}:65532::/tmp:/usr/sbin/nologin`,
      help: expect.stringContaining('skill-operator'),
      helpStatus: 0,
      jobs: 0,
      root: 'EROFS',
      temporary: 'written',
      parent: 'tini',
    });
  }

  test('has its programs, and works under any user id on a read-only root', async () => {
    await check('assembled', images.assembled ?? '');
  });

  test('keeps its own user where the cluster names none, and starts the operator, which says what it misses', async () => {
    const { runAsUser: _user, runAsGroup: _group, ...context } = LOCKED;
    const { pod: ended, log } = await pod('alone', images.assembled ?? '', { securityContext: context });
    expect(ended.status.containerStatuses[0].state.terminated).toMatchObject({ exitCode: 2 });
    expect(log).toMatch(/store/i);
  });

  test('starts within a second of computing', async () => {
    const script = `const { spawnSync } = require('node:child_process'); spawnSync('node', ['dist/main.js', '--help']);
      const [user, system] = require('node:fs').readFileSync('/proc/self/stat', 'utf8').split(') ')[1].split(' ').slice(13, 15);
      console.log((Number(user) + Number(system)) / 100);`;
    const { log } = await pod('start', images.assembled ?? '', { args: ['-e', script] });
    say(`the operator in the image starts with ${log.trim()} s of processor time`);
    expect(Number(log)).toBeGreaterThan(0);
    expect(Number(log)).toBeLessThan(1);
  });

  test(
    'comes out of the Dockerfile in the same way, built by Kaniko without a network',
    async () => {
      await check('built', await build());
    },
    MAKE_MS,
  );
});

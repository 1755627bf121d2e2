import type { Job } from 'kubernetes-types/batch/v1.d.ts';
import type { Container, PodSpec } from 'kubernetes-types/core/v1.d.ts';
import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { buildJob, buildSecret } from '../../../src/build/manifest.ts';
import { urlSeconds } from '../../../src/build/settings.ts';
import { FULL, INPUT, SETTINGS } from './samples.ts';

const specOf = (job: Job) => job.spec?.template.spec as PodSpec;
const containersOf = (job: Job): Record<string, Container> => {
  const { initContainers = [], containers } = specOf(job);
  return Object.fromEntries([...initContainers, ...containers].map((one) => [one.name, one]));
};
const volumesAt = (container: Container | undefined) => container?.volumeMounts?.map(({ name }) => name);

describe('buildJob', () => {
  test('is this Job for settings that say no more than they must', () => {
    expect(stringify(buildJob(INPUT, SETTINGS), { lineWidth: 0, aliasDuplicateObjects: false })).toMatchInlineSnapshot(`
      "apiVersion: batch/v1
      kind: Job
      metadata:
        name: sb-ea9eed90dea35b08-1
        namespace: skill-builds
        labels:
          app.kubernetes.io/managed-by: skill-operator
          app.kubernetes.io/component: skill-build
          skills.tfrobot.io/installation: prod-1
          skills.tfrobot.io/namespace: team-a
          skills.tfrobot.io/skill-uid: 3f1c2b4e-0000-4000-8000-000000000001
          skills.tfrobot.io/engine: e2b
          skills.tfrobot.io/version: dddddddddddd
          skills.tfrobot.io/attempt: "1"
        annotations:
          skills.tfrobot.io/skill: team-a/acme.docs.pdf
          skills.tfrobot.io/digest: dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd
          skills.tfrobot.io/input-hash: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
          skills.tfrobot.io/image: registry.example.com/skills/prod-1/team-a/acme.docs.pdf-8ebf9cff-e2b
      spec:
        suspend: true
        backoffLimit: 0
        podFailurePolicy:
          rules:
            - action: Ignore
              onPodConditions:
                - type: DisruptionTarget
                  status: "True"
        podReplacementPolicy: Failed
        activeDeadlineSeconds: 2160
        ttlSecondsAfterFinished: 3600
        template:
          metadata:
            labels:
              app.kubernetes.io/managed-by: skill-operator
              app.kubernetes.io/component: skill-build
              skills.tfrobot.io/installation: prod-1
              skills.tfrobot.io/namespace: team-a
              skills.tfrobot.io/skill-uid: 3f1c2b4e-0000-4000-8000-000000000001
              skills.tfrobot.io/engine: e2b
              skills.tfrobot.io/version: dddddddddddd
              skills.tfrobot.io/attempt: "1"
              sidecar.istio.io/inject: "false"
            annotations:
              skills.tfrobot.io/skill: team-a/acme.docs.pdf
              skills.tfrobot.io/digest: dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd
              skills.tfrobot.io/input-hash: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
              skills.tfrobot.io/image: registry.example.com/skills/prod-1/team-a/acme.docs.pdf-8ebf9cff-e2b
              sidecar.istio.io/inject: "false"
          spec:
            restartPolicy: Never
            activeDeadlineSeconds: 2100
            serviceAccountName: skill-builder
            automountServiceAccountToken: false
            enableServiceLinks: false
            securityContext:
              seccompProfile:
                type: RuntimeDefault
            nodeSelector:
              kubernetes.io/os: linux
              kubernetes.io/arch: amd64
            initContainers:
              - name: fetch
                image: registry.example.com/skill-operator:1.0.0
                command:
                  - node
                  - dist/jobs.js
                  - fetch
                args:
                  - --urls=/run/skill-build/urls
                  - --context=/kaniko/skill/context
                  - --dockerfile=/kaniko/skill/dockerfile/Dockerfile
                  - --tar-sha256=1111111111111111111111111111111111111111111111111111111111111111
                  - --tar-size=4096
                  - --dockerfile-sha256=2222222222222222222222222222222222222222222222222222222222222222
                  - --dockerfile-size=120
                terminationMessagePolicy: FallbackToLogsOnError
                securityContext:
                  runAsUser: 0
                  runAsGroup: 0
                  allowPrivilegeEscalation: false
                  readOnlyRootFilesystem: true
                  capabilities:
                    drop:
                      - ALL
                resources:
                  requests:
                    cpu: 50m
                    memory: 64Mi
                    ephemeral-storage: 128Mi
                  limits:
                    cpu: "1"
                    memory: 512Mi
                    ephemeral-storage: 256Mi
                volumeMounts:
                  - name: urls
                    mountPath: /run/skill-build/urls
                    readOnly: true
                  - name: context
                    mountPath: /kaniko/skill/context
                  - name: dockerfile
                    mountPath: /kaniko/skill/dockerfile
              - name: build
                image: registry.example.com/kaniko@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
                args:
                  - --context=dir:///kaniko/skill/context
                  - --dockerfile=/kaniko/skill/dockerfile/Dockerfile
                  - --no-push
                  - --no-push-cache
                  - --oci-layout-path=/kaniko/skill/image/layout
                  - --custom-platform=linux/amd64
                  - --snapshot-mode=redo
                  - --ignore-path=/product_uuid
                  - --image-download-retry=3
                  - --image-fs-extract-retry=1
                  - --force
                  - --log-format=text
                  - --verbosity=info
                env:
                  - name: FF_KANIKO_SCOPED_DOCKERIGNORE
                    value: "true"
                terminationMessagePolicy: FallbackToLogsOnError
                securityContext:
                  runAsUser: 0
                  runAsGroup: 0
                  allowPrivilegeEscalation: false
                  capabilities:
                    drop:
                      - ALL
                    add:
                      - CHOWN
                      - DAC_OVERRIDE
                      - FOWNER
                      - SETGID
                      - SETUID
                      - SETFCAP
                      - KILL
                resources:
                  requests:
                    cpu: 500m
                    memory: 1Gi
                    ephemeral-storage: 4Gi
                  limits:
                    cpu: "2"
                    memory: 4Gi
                    ephemeral-storage: 20Gi
                volumeMounts:
                  - name: context
                    mountPath: /kaniko/skill/context
                    readOnly: true
                  - name: dockerfile
                    mountPath: /kaniko/skill/dockerfile
                    readOnly: true
                  - name: image
                    mountPath: /kaniko/skill/image
            containers:
              - name: push
                image: registry.example.com/skill-operator:1.0.0
                command:
                  - node
                  - dist/jobs.js
                  - push
                args:
                  - --layout=/run/skill-build/image/layout
                  - --work=/work
                  - --image=registry.example.com/skills/prod-1/team-a/acme.docs.pdf-8ebf9cff-e2b
                  - --max-bytes=5000000000
                  - --result=/dev/termination-log
                  - --credential=/run/skill-build/credential/config.json
                terminationMessagePolicy: FallbackToLogsOnError
                securityContext:
                  runAsUser: 0
                  runAsGroup: 0
                  allowPrivilegeEscalation: false
                  readOnlyRootFilesystem: true
                  capabilities:
                    drop:
                      - ALL
                resources:
                  requests:
                    cpu: 50m
                    memory: 128Mi
                    ephemeral-storage: 128Mi
                  limits:
                    cpu: "1"
                    memory: 512Mi
                    ephemeral-storage: 256Mi
                volumeMounts:
                  - name: image
                    mountPath: /run/skill-build/image
                    readOnly: true
                  - name: work
                    mountPath: /work
                  - name: credential
                    mountPath: /run/skill-build/credential
                    readOnly: true
            volumes:
              - name: urls
                secret:
                  secretName: sb-ea9eed90dea35b08-1
                  defaultMode: 256
              - name: context
                emptyDir:
                  sizeLimit: 256Mi
              - name: dockerfile
                emptyDir:
                  sizeLimit: 1Mi
              - name: image
                emptyDir:
                  sizeLimit: "5268435456"
              - name: work
                emptyDir:
                  sizeLimit: "5268435456"
              - name: credential
                secret:
                  secretName: registry-push
                  items:
                    - key: .dockerconfigjson
                      path: config.json
                  defaultMode: 256
      "
    `);
  });

  test('is the same for the same input, and has another name for another attempt', () => {
    expect(buildJob(INPUT, SETTINGS)).toEqual(buildJob(structuredClone(INPUT), structuredClone(SETTINGS)));
    expect(buildJob({ ...INPUT, attempt: 2 }, SETTINGS).metadata?.name).toMatch(/-2$/);
  });

  test('runs fetch and build before push', () => {
    const spec = specOf(buildJob(INPUT, SETTINGS));
    expect(spec.initContainers?.map(({ name }) => name)).toEqual(['fetch', 'build']);
    expect(spec.containers.map(({ name }) => name)).toEqual(['push']);
  });

  test('mounts the URLs in fetch alone and the push credential in push alone', () => {
    const { fetch, build, push } = containersOf(buildJob(INPUT, SETTINGS));
    expect(volumesAt(fetch)).toEqual(['urls', 'context', 'dockerfile']);
    expect(volumesAt(build)).toEqual(['context', 'dockerfile', 'image']);
    expect(volumesAt(push)).toEqual(['image', 'work', 'credential']);
  });

  test('gives the author’s commands no secret, no token and nothing from a Secret by environment', () => {
    const job = buildJob(INPUT, FULL);
    const { build } = containersOf(job);
    expect(specOf(job).automountServiceAccountToken).toBe(false);
    expect(build?.envFrom).toBeUndefined();
    expect(build?.env?.filter((variable) => variable.valueFrom)).toEqual([]);
    const secrets = specOf(job).volumes?.filter((volume) => volume.secret ?? volume.projected);
    expect(secrets?.map(({ name }) => name)).toEqual(['urls']);
    expect(volumesAt(build)).not.toContain('urls');
  });

  test('keeps every mount of the author’s container below a directory that no snapshot takes', () => {
    const { build } = containersOf(buildJob(INPUT, FULL));
    expect(build?.volumeMounts?.filter(({ mountPath }) => !mountPath.startsWith('/kaniko/'))).toEqual([]);
  });

  test('gives the author’s container the context read-only', () => {
    const { build } = containersOf(buildJob(INPUT, SETTINGS));
    const readOnly = build?.volumeMounts?.filter((mount) => mount.readOnly).map(({ name }) => name);
    expect(readOnly).toEqual(['context', 'dockerfile']);
  });

  test('passes mirrors, certificates, proxies and plain registries on', () => {
    const { fetch, build, push } = containersOf(buildJob(INPUT, FULL));
    expect({
      build: build?.args,
      env: build?.env,
      fetch: fetch?.args?.slice(7),
      push: push?.args,
    }).toMatchInlineSnapshot(`
      {
        "build": [
          "--context=dir:///kaniko/skill/context",
          "--dockerfile=/kaniko/skill/dockerfile/Dockerfile",
          "--no-push",
          "--no-push-cache",
          "--oci-layout-path=/kaniko/skill/image/layout",
          "--custom-platform=linux/arm64",
          "--snapshot-mode=redo",
          "--ignore-path=/product_uuid",
          "--registry-mirror=mirror.example.com/hub",
          "--registry-map=quay.io=mirror.example.com/quay",
          "--skip-default-registry-fallback",
          "--insecure-registry=10.0.0.6:5000",
          "--insecure-registry=10.0.0.5:5000",
          "--registry-certificate=mirror.example.com=/kaniko/skill/ca/ca.crt",
          "--image-download-retry=3",
          "--image-fs-extract-retry=1",
          "--force",
          "--log-format=text",
          "--verbosity=info",
        ],
        "env": [
          {
            "name": "FF_KANIKO_SCOPED_DOCKERIGNORE",
            "value": "true",
          },
          {
            "name": "HTTP_PROXY",
            "value": "http://proxy:3128",
          },
          {
            "name": "http_proxy",
            "value": "http://proxy:3128",
          },
          {
            "name": "HTTPS_PROXY",
            "value": "http://proxy:3128",
          },
          {
            "name": "https_proxy",
            "value": "http://proxy:3128",
          },
          {
            "name": "NO_PROXY",
            "value": "10.0.0.0/8",
          },
          {
            "name": "no_proxy",
            "value": "10.0.0.0/8",
          },
        ],
        "fetch": [
          "--ca=/run/skill-build/ca/ca.crt",
          "--http-proxy=http://proxy:3128",
          "--https-proxy=http://proxy:3128",
          "--no-proxy=10.0.0.0/8",
        ],
        "push": [
          "--layout=/run/skill-build/image/layout",
          "--work=/work",
          "--image=10.0.0.5:5000/prod-1/team-a/acme.docs.pdf-8ebf9cff-e2b",
          "--max-bytes=5000000000",
          "--result=/dev/termination-log",
          "--insecure",
          "--ca=/run/skill-build/ca",
          "--http-proxy=http://proxy:3128",
          "--https-proxy=http://proxy:3128",
          "--no-proxy=10.0.0.0/8",
        ],
      }
    `);
  });

  test('places the pod as the settings say', () => {
    const { nodeSelector, tolerations, runtimeClassName, hostUsers, priorityClassName, imagePullSecrets } = specOf(
      buildJob(INPUT, FULL),
    );
    expect({
      nodeSelector,
      tolerations,
      runtimeClassName,
      hostUsers,
      priorityClassName,
      imagePullSecrets,
    }).toMatchInlineSnapshot(`
        {
          "hostUsers": false,
          "imagePullSecrets": [
            {
              "name": "pull",
            },
          ],
          "nodeSelector": {
            "kubernetes.io/arch": "arm64",
            "kubernetes.io/os": "linux",
            "pool": "builds",
          },
          "priorityClassName": "low",
          "runtimeClassName": "gvisor",
          "tolerations": [
            {
              "effect": "NoSchedule",
              "key": "builds",
              "operator": "Exists",
            },
          ],
        }
      `);
  });

  test('ends when waiting and running may have taken their longest, and the URLs live a little longer', () => {
    const job = buildJob(INPUT, SETTINGS);
    const pod = job.spec?.template.spec?.activeDeadlineSeconds;
    expect(pod).toBe(2100);
    // The Job comes later: when it ends a pod, the log is lost.
    expect(job.spec?.activeDeadlineSeconds).toBe(2160);
    expect(urlSeconds(SETTINGS)).toBeGreaterThan(2100);
  });

  test('has labels that Kubernetes takes for the longest names there are', () => {
    const job = buildJob(
      {
        ...INPUT,
        skill: { namespace: 'n'.repeat(63), name: 'a'.repeat(253), uid: 'u'.repeat(80) },
        engine: 'cubesandbox',
        attempt: 999,
      },
      { ...SETTINGS, installation: `i${'-'.repeat(62)}` },
    );
    const values = Object.values(job.spec?.template.metadata?.labels ?? {});
    expect(values.filter((value) => !/^[A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?$/.test(value))).toEqual([]);
    expect(job.metadata?.name?.length).toBeLessThanOrEqual(63);
  });
});

describe('buildSecret', () => {
  test('belongs to the Job of its attempt and holds the URLs', () => {
    const urls = { tar: 'https://s3/p?X=1', dockerfile: 'https://s3/d?X=2' };
    const secret = buildSecret(INPUT, SETTINGS, 'job-uid', urls);
    expect(secret.metadata?.name).toBe(buildJob(INPUT, SETTINGS).metadata?.name);
    expect(secret.metadata?.ownerReferences).toEqual([
      { apiVersion: 'batch/v1', kind: 'Job', name: secret.metadata?.name, uid: 'job-uid', controller: true },
    ]);
    const decoded = Object.entries(secret.data ?? {}).map(([key, value]) => [
      key,
      Buffer.from(value, 'base64').toString(),
    ]);
    expect(Object.fromEntries(decoded)).toEqual({ 'package.tar': urls.tar, Dockerfile: urls.dockerfile });
  });

  test('leaves no URL in the Job', () => {
    expect(JSON.stringify(buildJob(INPUT, SETTINGS))).not.toMatch(/https?:/);
  });
});

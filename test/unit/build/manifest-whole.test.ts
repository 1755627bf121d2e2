import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { buildJob } from '../../../src/build/manifest.ts';
import { INPUT, SETTINGS } from './samples.ts';

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
});

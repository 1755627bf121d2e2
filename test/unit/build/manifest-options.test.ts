import { describe, expect, test } from 'vitest';
import { buildJob } from '../../../src/build/manifest.ts';
import { containersOf, FULL, INPUT, specOf } from './samples.ts';

describe('buildJob', () => {
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
});

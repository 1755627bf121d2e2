import { describe, expect, test } from 'vitest';
import { networkPolicy } from '../../../src/build/network.ts';
import { type BuildSettings, buildSettingsProblems } from '../../../src/build/settings.ts';
import { FULL, SETTINGS } from './samples.ts';

describe('buildSettingsProblems', () => {
  test('finds nothing in settings that work', () => {
    expect([...buildSettingsProblems(SETTINGS), ...buildSettingsProblems(FULL)]).toEqual([]);
  });

  test.each<[Partial<BuildSettings>, RegExp]>([
    [{ builderImage: 'kaniko:v1' }, /builderImage must be pinned/],
    [{ registry: { host: '', prefix: '' } }, /registry.host must be host or host:port, found ""/],
    [{ registry: { host: 'https://r', prefix: '' } }, /registry.host/],
    [{ registry: { host: 'r', prefix: 'Team/' } }, /registry.prefix/],
    [{ baseImages: { map: { 'quay.io/x': 'm' } } }, /baseImages.map/],
    [{ jobsCommand: [] }, /jobsCommand/],
    [{ deadlines: { pendingSeconds: 1, activeSeconds: 604_800, keepSeconds: 1, removalSeconds: 1 } }, /a week/],
    [{ limits: { total: 0, perNamespace: 1 } }, /at least 1/],
    [{ proxy: { http: 'http://user:pw@proxy' } }, /must not hold a user or a password: every Dockerfile could read/],
    [{ proxy: { https: 'proxy:3128' } }, /proxy.https must be an http or https URL/],
  ])('%o → %s', (change, expected) => {
    const problems = buildSettingsProblems({ ...SETTINGS, ...change });
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(expected);
  });

  test('never repeats the password of a proxy', () => {
    const problems = buildSettingsProblems({ ...SETTINGS, proxy: { http: 'http://user:s3cret@proxy' } });
    expect(problems.join()).not.toContain('s3cret');
  });
});

describe('networkPolicy', () => {
  const rule = {
    to: [{ namespaceSelector: { matchLabels: { team: 'index' } } }],
    ports: [{ protocol: 'TCP', port: 8080 }],
  };
  const policy = networkPolicy({ ...SETTINGS, network: { egress: [rule] } });

  test('lets build pods reach DNS, public 443 and what is listed, and nobody reach them', () => {
    expect(policy).toMatchInlineSnapshot(`
      {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {
          "labels": {
            "app.kubernetes.io/component": "skill-build",
            "app.kubernetes.io/managed-by": "skill-operator",
          },
          "name": "skill-build",
          "namespace": "skill-builds",
        },
        "spec": {
          "egress": [
            {
              "ports": [
                {
                  "port": 53,
                  "protocol": "UDP",
                },
                {
                  "port": 53,
                  "protocol": "TCP",
                },
              ],
            },
            {
              "ports": [
                {
                  "port": 443,
                  "protocol": "TCP",
                },
              ],
              "to": [
                {
                  "ipBlock": {
                    "cidr": "0.0.0.0/0",
                    "except": [
                      "10.0.0.0/8",
                      "100.64.0.0/10",
                      "127.0.0.0/8",
                      "169.254.0.0/16",
                      "172.16.0.0/12",
                      "192.168.0.0/16",
                    ],
                  },
                },
                {
                  "ipBlock": {
                    "cidr": "::/0",
                    "except": [
                      "fc00::/7",
                      "fe80::/10",
                    ],
                  },
                },
              ],
            },
            {
              "ports": [
                {
                  "port": 8080,
                  "protocol": "TCP",
                },
              ],
              "to": [
                {
                  "namespaceSelector": {
                    "matchLabels": {
                      "team": "index",
                    },
                  },
                },
              ],
            },
          ],
          "ingress": [],
          "podSelector": {
            "matchLabels": {
              "app.kubernetes.io/component": "skill-build",
            },
          },
          "policyTypes": [
            "Ingress",
            "Egress",
          ],
        },
      }
    `);
  });

  test('never opens metadata services and private networks', () => {
    const blocks = policy.spec?.egress?.flatMap(({ to = [] }) => to.flatMap(({ ipBlock }) => ipBlock ?? []));
    expect(blocks?.map(({ cidr }) => cidr)).toEqual(['0.0.0.0/0', '::/0']);
    expect(blocks?.[0]?.except).toContain('169.254.0.0/16');
  });
});

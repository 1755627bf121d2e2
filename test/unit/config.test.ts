import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { redact } from '../../src/base/redact.ts';
import { loadConfig, parseConfig, usage } from '../../src/config.ts';

const dir = mkdtempSync(join(tmpdir(), 'skill-operator-config-'));
afterAll(() => rmSync(dir, { recursive: true }));

const NEEDED = {
  SKILL_OPERATOR_STORE_ENDPOINT: 'http://s3:9000',
  SKILL_OPERATOR_STORE_BUCKET: 'skills',
  SKILL_OPERATOR_STORE_ACCESS_KEY: 'access-key-1',
  SKILL_OPERATOR_STORE_SECRET_KEY: 'secret-key-of-the-test',
};

function load(argv: string[] = [], env: Record<string, string> = {}) {
  const settings = loadConfig(argv, { ...NEEDED, ...env });
  if ('help' in settings) throw new Error('help');
  return settings.config;
}

let files = 0;
function file(text: string): string {
  const path = join(dir, `${++files}.yaml`);
  writeFileSync(path, text);
  return path;
}

const failure = (run: () => unknown): string => {
  try {
    run();
  } catch (error) {
    if (error instanceof Error) return error.message;
  }
  throw new Error('nothing was refused');
};

describe('loadConfig', () => {
  it('needs the store alone and fills in the rest', () => {
    expect(load()).toMatchInlineSnapshot(`
      {
        "computeWorkers": 1,
        "engines": {},
        "git": {
          "minIntervalMs": 0,
          "perHost": 4,
          "proxy": {},
        },
        "leaderElection": true,
        "logLevel": "info",
        "metricsAddress": ":8080",
        "mirrorDir": "/var/lib/skill-operator/mirrors",
        "mirrorDiskMiB": 10240,
        "operatorNamespace": "skill-operator-system",
        "skillWorkers": 16,
        "sourceWorkers": 8,
        "store": {
          "accessKey": "access-key-1",
          "bucket": "skills",
          "endpoint": "http://s3:9000",
          "prefix": "",
          "region": "us-east-1",
          "secretKey": "secret-key-of-the-test",
        },
        "sweep": {
          "enabled": true,
          "graceHours": 24,
          "intervalHours": 6,
        },
        "tier1": {
          "cubesandbox::node": "cube-tpl-node",
          "cubesandbox::python": "cube-tpl-py",
          "e2b::node": "e2b-node",
          "e2b::python": "e2b-python",
        },
        "webhookAddress": "",
      }
    `);
  });

  it('prefers the flag to the environment, that to the file, that to the default', () => {
    const config = file(
      'skillWorkers: 5\nsourceWorkers: 6\nstore:\n  prefix: from-file\n  region: eu-1\nlogLevel: debug\n',
    );
    const env = { SKILL_OPERATOR_SOURCE_WORKERS: '7', SKILL_OPERATOR_STORE_PREFIX: 'from-env' };
    const read = load(['--config', config, '--store-prefix=from-flag', '--store-region', 'us-9'], env);
    expect(read).toMatchObject({
      skillWorkers: 5,
      sourceWorkers: 7,
      logLevel: 'debug',
      mirrorDiskMiB: 10_240,
      store: { prefix: 'from-flag', region: 'us-9', endpoint: 'http://s3:9000' },
    });
  });

  it('reads what only a file can say', () => {
    const config = load(['--config', file('tier1: {"e2b::python": my-template}')]);
    expect(config.tier1).toEqual({ 'e2b::python': 'my-template' });
  });

  it.each([
    ['--leader-election=false', { leaderElection: false }],
    ['--leader-election=true', { leaderElection: true }],
    ['--metrics-address=', { metricsAddress: '' }],
    ['--metrics-address=[::1]:80', { metricsAddress: '[::1]:80' }],
    ['--compute-workers=0', { computeWorkers: 0 }],
    ['--installation=prod-1', { installation: 'prod-1' }],
    ['--watch-namespaces=team, market,team', { watchNamespaces: ['team', 'market'] }],
    ['--shard-selector=shard in (a,b),!old', { shardSelector: 'shard in (a,b),!old' }],
    ['--sweep=false', { sweep: { enabled: false, graceHours: 24 } }],
    ['--sweep-grace-hours=0.5', { sweep: { enabled: true, graceHours: 0.5, intervalHours: 6 } }],
  ])('takes %s', (argument, expected) => {
    expect(load([argument])).toMatchObject(expected);
  });

  it.each(['-h', '--help'])('knows %s, even without any setting', (argument) => {
    expect(loadConfig([argument], {})).toEqual({ help: true });
  });

  it('gives a value that nobody can change', () => {
    const config = load();
    expect(() => Object.assign(config, { logLevel: 'x' })).toThrow(TypeError);
    expect(() => Object.assign(config.store, { bucket: 'x' })).toThrow(TypeError);
    expect(() => Object.assign(config.tier1, { x: 'y' })).toThrow(TypeError);
  });

  it('has the secret key masked from then on', () => {
    load();
    expect(redact('the key is secret-key-of-the-test')).toBe('the key is ***');
  });

  it('takes proxies from the usual variables; the file goes before, and no password is repeated', () => {
    const env = {
      HTTP_PROXY: 'proxy:3128',
      https_proxy: 'http://robot:canary-p%2Fw@proxy:3129',
      NO_PROXY: '.svc, 10.0.0.0/8',
    };
    expect(load([], env).git.proxy).toEqual({
      ...{ http: 'http://proxy:3128', https: 'http://robot:canary-p%2Fw@proxy:3129', noProxy: '.svc, 10.0.0.0/8' },
    });
    expect(redact('canary-p%2Fw canary-p/w')).toBe('*** ***');
    const config = file('git: {proxy: {https: "https://own:1"}}');
    expect(load(['--config', config], env).git.proxy).toMatchObject({
      http: 'http://proxy:3128',
      https: 'https://own:1',
    });
    expect(load([], { HTTPS_PROXY: '' }).git.proxy).toEqual({});
    for (const https of ['socks5://canary@p:1', 'http://u:canary%zz@p:1']) {
      const message = failure(() => load([], { HTTPS_PROXY: https }));
      expect(message).toMatch(/git\.proxy\.https: (?!.*canary)/);
    }
  });

  it('takes the secret key from the environment alone: there is no flag for it', () => {
    expect(failure(() => load(['--store-secret-key=x']))).toContain("Unknown option '--store-secret-key'");
  });
});

describe('the grace of the sweep', () => {
  const build = {
    namespace: 'builds',
    operatorImage: 'registry.example/operator:1',
    builderImage: `registry.example/kaniko@sha256:${'a'.repeat(64)}`,
    registry: { host: 'registry.example' },
    deadlines: { pendingSeconds: 1_800, activeSeconds: 5_400 },
  };
  const store = { endpoint: 'http://s3:9000', bucket: 'skills', accessKey: 'a', secretKey: 'a-long-secret-key' };
  const read = (graceHours: number, more: object = {}) => parseConfig({ store, sweep: { graceHours }, ...more });

  it('is above the longest build, or the setting is refused by name', () => {
    expect(read(2.01, { build }).sweep.graceHours).toBe(2.01);
    expect(failure(() => read(2, { build }))).toContain(
      'sweep.graceHours: must be above the longest build, 7200 s by build.deadlines; raise it above 2.00',
    );
  });
  it('is free where nothing is built or nothing swept', () => {
    expect(read(0).sweep.graceHours).toBe(0);
    expect(parseConfig({ store, build, sweep: { graceHours: 0, enabled: false } }).sweep.enabled).toBe(false);
  });
});

describe('what is refused', () => {
  it('is listed setting by setting, by name', () => {
    const argv = ['--skill-workers=0', '--log-level=loud', '--store-endpoint=ftp://x', '--metrics-address=8080'];
    expect(
      failure(() => load([...argv, '--installation=No!'], { SKILL_OPERATOR_MIRROR_DISK_MIB: 'much' })),
    ).toMatchInlineSnapshot(`
      "the configuration cannot be used:
        store.endpoint: Invalid URL
        installation: Invalid string: must match pattern /^[a-z0-9-]{1,63}$/
        mirrorDiskMiB: Invalid input: expected number, received NaN
        skillWorkers: Too small: expected number to be >=1
        metricsAddress: must be host:port, :port, or empty for none
        logLevel: Invalid option: expected one of "trace"|"debug"|"info"|"warn"|"error"|"silent"
      see skill-operator --help"
    `);
  });

  it('tells what has to be set when nothing is', () => {
    expect(failure(() => loadConfig([], {}))).toMatchInlineSnapshot(`
      "the configuration cannot be used:
        store: Invalid input: expected object, received undefined
      see skill-operator --help"
    `);
  });

  it.each<[string, string, RegExp]>([
    ['an unknown key', 'skilWorkers: 5', /skilWorkers/],
    ['an unknown key of the store', 'store: {buckets: x}', /store.*buckets/s],
    ['a list', '- a', /config/],
    ['a text', 'just text', /config/],
    ['a store that is none', 'store: nothing', /store/],
    ['YAML that is none', 'a: [', /yaml/i],
    ['an unknown runtime', 'tier1: {"e2b::ruby": x}', /tier1/],
  ])('in a file: %s', (_, text, expected) => {
    const path = file(text);
    const message = failure(() => load(['--config', path]));
    expect(message).toMatch(expected);
    expect(message).toMatch(/^the configuration cannot be used/);
    expect(message).toContain('--help');
  });

  it('takes an empty namespace to watch for all of them', () => {
    expect(load(['--watch-namespaces='])).not.toHaveProperty('watchNamespaces');
  });

  it.each<[string, Record<string, string>, RegExp]>([
    [
      'an endpoint with a path',
      { STORE_ENDPOINT: 'http://s3:9000/minio' },
      /store: the store endpoint must be a plain/,
    ],
    ['no name of a bucket', { STORE_BUCKET: 'No!' }, /store: "No!" is no bucket name/],
    ['an authority that is not there', { STORE_CA_FILE: '/nonexistent/ca.crt' }, /store: ENOENT.*ca\.crt/],
    ['no names of namespaces', { WATCH_NAMESPACES: 'team,No!' }, /watchNamespaces\.1: must be the names of namespaces/],
    [
      'no headers',
      { OTLP_ENDPOINT: 'http://otel:4318', OTLP_HEADERS: 'canary' },
      /tracing\.headers: must be name=value/,
    ],
    ['headers without a collector', { OTLP_HEADERS: 'a=b' }, /tracing\.endpoint/],
    ['no selector', { SHARD_SELECTOR: 'shard in a' }, /shardSelector: must be a label selector/],
  ])('before a Lease is taken: %s', (_, settings, expected) => {
    const env = Object.fromEntries(Object.entries(settings).map(([name, value]) => [`SKILL_OPERATOR_${name}`, value]));
    expect(failure(() => load([], env))).toMatch(expected);
  });

  it('does not repeat a line of the file, where the S3 key may stand', () => {
    const path = file('store:\n  secretKey: canary-pw: [\n');
    expect(failure(() => load(['--config', path]))).toBe(
      `the configuration cannot be used:\n  ${path}: line 2 is not valid YAML (BLOCK_AS_IMPLICIT_KEY)\nsee skill-operator --help`,
    );
  });

  it('is a file that is not there, by its name', () => {
    const message = failure(() => load(['--config', '/nonexistent/config.yaml']));
    expect(message).toMatch(/^the configuration cannot be used/);
    expect(message).toContain('/nonexistent/config.yaml');
  });

  it.each([
    ['an endpoint with a password', { SKILL_OPERATOR_STORE_ENDPOINT: 'http://user:canary-pw@' }],
    ['a key in the wrong place', { SKILL_OPERATOR_LOG_LEVEL: 'canary-pw' }],
    ['a number', { SKILL_OPERATOR_SKILL_WORKERS: 'canary-pw' }],
  ])('is never repeated, for it may be a secret: %s', (_, env) => {
    expect(failure(() => load([], env))).not.toContain('canary-pw');
  });
});

describe('parseConfig', () => {
  it.each([null, undefined, 1, 'text', []])('refuses %j', (raw) => {
    expect(failure(() => parseConfig(raw))).toContain('the configuration cannot be used');
  });
});

it('--help lists every setting with its variable', () => {
  expect(usage()).toMatchInlineSnapshot(`
    "skill-operator: reconciles MarketplaceSources and Skills of a Kubernetes cluster.

    Usage: skill-operator [--config FILE] [flags]

      --config FILE            YAML file with the same settings (keys as in docs/guides/configuration.md)
      --store-endpoint         URL of the S3 server, e.g. http://minio.minio.svc:9000  [SKILL_OPERATOR_STORE_ENDPOINT]
      --store-bucket           bucket for packages; it must exist  [SKILL_OPERATOR_STORE_BUCKET]
      --store-prefix           key prefix within the bucket  [SKILL_OPERATOR_STORE_PREFIX]
      --store-region           S3 region (us-east-1)  [SKILL_OPERATOR_STORE_REGION]
      --store-ca-file          PEM file with the CA of the S3 server  [SKILL_OPERATOR_STORE_CA_FILE]
      --installation           installation id; empty: kept in a ConfigMap  [SKILL_OPERATOR_INSTALLATION]
      --operator-namespace     namespace of the operator (skill-operator-system)  [SKILL_OPERATOR_OPERATOR_NAMESPACE]
      --watch-namespaces       watch these namespaces only, as a,b; empty: all  [SKILL_OPERATOR_WATCH_NAMESPACES]
      --shard-selector         work on the sources with these labels only, e.g. shard=a  [SKILL_OPERATOR_SHARD_SELECTOR]
      --mirror-dir             directory for bare Git mirrors (an emptyDir)  [SKILL_OPERATOR_MIRROR_DIR]
      --mirror-disk-mib        disk cap of all mirrors in MiB (10240)  [SKILL_OPERATOR_MIRROR_DISK_MIB]
      --source-workers         sources reconciled at once (8)  [SKILL_OPERATOR_SOURCE_WORKERS]
      --git-per-host           sources and Skills that talk to one Git host at once (4)  [SKILL_OPERATOR_GIT_PER_HOST]
      --git-min-interval-ms    least time between two of them in ms (0)  [SKILL_OPERATOR_GIT_MIN_INTERVAL_MS]
      --skill-workers          skills reconciled at once (16)  [SKILL_OPERATOR_SKILL_WORKERS]
      --compute-workers        threads for large packages (1)  [SKILL_OPERATOR_COMPUTE_WORKERS]
      --sweep                  delete what no Skill names from bucket and registry (true)  [SKILL_OPERATOR_SWEEP]
      --sweep-grace-hours      how long that stays after it is named no more (24)  [SKILL_OPERATOR_SWEEP_GRACE_HOURS]
      --sweep-interval-hours   time between two sweeps, and two heals (6)  [SKILL_OPERATOR_SWEEP_INTERVAL_HOURS]
      --leader-election        take a Lease before working (true)  [SKILL_OPERATOR_LEADER_ELECTION]
      --metrics-address        host:port of /metrics, /healthz, /readyz (:8080)  [SKILL_OPERATOR_METRICS_ADDRESS]
      --webhook-address        host:port of the webhook receiver, e.g. :9292; empty: none  [SKILL_OPERATOR_WEBHOOK_ADDRESS]
      --otlp-endpoint          URL of an OpenTelemetry collector (OTLP over HTTP); empty: no traces  [SKILL_OPERATOR_OTLP_ENDPOINT]
      --trace-ratio            share of the passes that are traced, 0 to 1 (1)  [SKILL_OPERATOR_TRACE_RATIO]
      --log-level              trace, debug, info, warn, error or silent (info)  [SKILL_OPERATOR_LOG_LEVEL]

    HTTP_PROXY, HTTPS_PROXY and NO_PROXY count for Git.
    Keys come from SKILL_OPERATOR_STORE_ACCESS_KEY, SKILL_OPERATOR_STORE_SECRET_KEY, SKILL_OPERATOR_OTLP_HEADERS alone.
    The cluster comes from KUBECONFIG, or from the service account of the pod."
  `);
});

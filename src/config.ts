import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { parseDocument } from 'yaml';
import { z } from 'zod';
import { messageOf } from './base/errors.ts';
import { LOG_LEVELS } from './base/log.ts';
import { holdSecret } from './base/redact.ts';
import { buildSchema, enginesSchema } from './config.build.ts';
import { gitSchema, holdProxySecrets, proxyFromEnvironment } from './config.git.ts';
import { selectorLabels } from './kube/selector.ts';
import { parseSettings } from './store/s3.settings.ts';

/**
 * The only reader of process.env: command line, environment and file become one frozen Config.
 * Precedence: flag, environment variable, file (--config), default.
 */

const text = z.string().min(1);
const flag = z.union([z.boolean(), z.enum(['true', 'false']).transform((v) => v === 'true')]);
const count = z.coerce.number().int();

const listenAddress = z
  .string()
  .regex(/^([\w.-]*|\[[0-9a-f:]+\]):\d+$|^$/, 'must be host:port, :port, or empty for none');

const Settings = z.strictObject({
  store: z.strictObject({
    endpoint: z.url({ protocol: /^https?$/ }),
    bucket: text.max(63),
    prefix: z
      .string()
      .regex(/^([\w.-]+(\/[\w.-]+)*)?$/, 'must be a clean relative key prefix such as "skills"')
      .default(''),
    region: text.default('us-east-1'),
    accessKey: text,
    secretKey: text,
    caFile: text.optional(),
  }),
  /** Empty: read from ConfigMap skill-operator-installation. */
  installation: z
    .string()
    .regex(/^[a-z0-9-]{1,63}$/)
    .optional(),
  operatorNamespace: text.default('skill-operator-system'),
  /** Absent: all namespaces. */
  watchNamespaces: z
    .array(z.string().regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/, 'must be the names of namespaces'))
    .min(1)
    // Each costs two watches.
    .max(32)
    .optional(),
  /** Label selector of the sources that this instance works on; absent: all. */
  shardSelector: z
    .string()
    .max(1024)
    .refine(
      (given) => selectorLabels(given) !== undefined,
      'must be a label selector such as "shard=a" or "shard in (a,b)"',
    )
    .optional(),
  /** runtime → template id or alias on that engine. */
  tier1: z
    .partialRecord(z.enum(['cubesandbox::python', 'cubesandbox::node', 'e2b::python', 'e2b::node']), text)
    .default({
      'cubesandbox::python': 'cube-tpl-py',
      'cubesandbox::node': 'cube-tpl-node',
      'e2b::python': 'e2b-python',
      'e2b::node': 'e2b-node',
    }),
  mirrorDir: text.default('/var/lib/skill-operator/mirrors'),
  mirrorDiskMiB: count.min(64).default(10_240),
  git: gitSchema,
  sourceWorkers: count.min(1).max(64).default(8),
  skillWorkers: count.min(1).max(256).default(16),
  computeWorkers: count.min(0).max(16).default(1),
  sweep: z
    .strictObject({
      enabled: flag.default(true),
      graceHours: z.coerce.number().min(0).max(8_760).default(24),
      intervalHours: z.coerce.number().positive().max(168).default(6),
    })
    .prefault({}),
  build: buildSchema.optional(),
  engines: enginesSchema,
  leaderElection: flag.default(true),
  metricsAddress: listenAddress.default(':8080'),
  /** Empty: no webhooks. */
  webhookAddress: listenAddress.default(''),
  logLevel: z.enum(LOG_LEVELS).default('info'),
  /** Absent: no traces. */
  tracing: z
    .strictObject({
      endpoint: z.url({ protocol: /^https?$/ }),
      /** `name=value,…`, for a collector that asks for a key. */
      headers: text
        .regex(/^[\w-]+=[^,]+(,[\w-]+=[^,]+)*$/, 'must be name=value, several with commas between them')
        .optional(),
      sampleRatio: z.coerce.number().min(0).max(1).default(1),
    })
    .optional(),
});

const SECONDS_PER_HOUR = 3_600;

/** What the store's adapter would refuse is refused here: before a Lease is taken, and by name. */
function checkStore(store: z.infer<typeof Settings>['store'], context: z.RefinementCtx): void {
  try {
    parseSettings(store);
    if (store.caFile) readFileSync(store.caFile);
  } catch (error) {
    context.addIssue({ code: 'custom', path: ['store'], message: messageOf(error) });
  }
}

/** A build that takes longer than the grace could lose its package to the sweep. */
const Schema = Settings.superRefine(({ store, sweep, build }, context) => {
  checkStore(store, context);
  if (!build || !sweep.enabled) return;
  const longest = build.deadlines.pendingSeconds + build.deadlines.activeSeconds;
  if (sweep.graceHours * SECONDS_PER_HOUR > longest) return;
  const message = `must be above the longest build, ${longest} s by build.deadlines; raise it above ${(longest / SECONDS_PER_HOUR).toFixed(2)}`;
  context.addIssue({ code: 'custom', path: ['sweep', 'graceHours'], message });
});

/** JSON schema (draft 7) of what a settings file may hold; the chart's values.schema.json is made of it. */
export const settingsSchema = (): z.core.JSONSchema.BaseSchema =>
  z.toJSONSchema(Settings, { target: 'draft-7', io: 'input' });

/** Everything that can be set, checked and with defaults filled in. Deeply frozen. */
export type Config = Readonly<z.infer<typeof Schema>>;

/** Flag → [path in the config, environment variable, help]. */
const SETTINGS: Record<string, [string, string, string]> = {
  'store-endpoint': ['store.endpoint', 'STORE_ENDPOINT', 'URL of the S3 server, e.g. http://minio.minio.svc:9000'],
  'store-bucket': ['store.bucket', 'STORE_BUCKET', 'bucket for packages; it must exist'],
  'store-prefix': ['store.prefix', 'STORE_PREFIX', 'key prefix within the bucket'],
  'store-region': ['store.region', 'STORE_REGION', 'S3 region (us-east-1)'],
  'store-ca-file': ['store.caFile', 'STORE_CA_FILE', 'PEM file with the CA of the S3 server'],
  installation: ['installation', 'INSTALLATION', 'installation id; empty: kept in a ConfigMap'],
  'operator-namespace': [
    'operatorNamespace',
    'OPERATOR_NAMESPACE',
    'namespace of the operator (skill-operator-system)',
  ],
  'watch-namespaces': ['watchNamespaces', 'WATCH_NAMESPACES', 'watch these namespaces only, as a,b; empty: all'],
  'shard-selector': ['shardSelector', 'SHARD_SELECTOR', 'work on the sources with these labels only, e.g. shard=a'],
  'mirror-dir': ['mirrorDir', 'MIRROR_DIR', 'directory for bare Git mirrors (an emptyDir)'],
  'mirror-disk-mib': ['mirrorDiskMiB', 'MIRROR_DISK_MIB', 'disk cap of all mirrors in MiB (10240)'],
  'source-workers': ['sourceWorkers', 'SOURCE_WORKERS', 'sources reconciled at once (8)'],
  'git-per-host': ['git.perHost', 'GIT_PER_HOST', 'sources and Skills that talk to one Git host at once (4)'],
  'git-min-interval-ms': ['git.minIntervalMs', 'GIT_MIN_INTERVAL_MS', 'least time between two of them in ms (0)'],
  'skill-workers': ['skillWorkers', 'SKILL_WORKERS', 'skills reconciled at once (16)'],
  'compute-workers': ['computeWorkers', 'COMPUTE_WORKERS', 'threads for large packages (1)'],
  sweep: ['sweep.enabled', 'SWEEP', 'delete what no Skill names from bucket and registry (true)'],
  'sweep-grace-hours': ['sweep.graceHours', 'SWEEP_GRACE_HOURS', 'how long that stays after it is named no more (24)'],
  'sweep-interval-hours': ['sweep.intervalHours', 'SWEEP_INTERVAL_HOURS', 'time between two sweeps, and two heals (6)'],
  'leader-election': ['leaderElection', 'LEADER_ELECTION', 'take a Lease before working (true)'],
  'metrics-address': ['metricsAddress', 'METRICS_ADDRESS', 'host:port of /metrics, /healthz, /readyz (:8080)'],
  'webhook-address': [
    'webhookAddress',
    'WEBHOOK_ADDRESS',
    'host:port of the webhook receiver, e.g. :9292; empty: none',
  ],
  'otlp-endpoint': [
    'tracing.endpoint',
    'OTLP_ENDPOINT',
    'URL of an OpenTelemetry collector (OTLP over HTTP); empty: no traces',
  ],
  'trace-ratio': ['tracing.sampleRatio', 'TRACE_RATIO', 'share of the passes that are traced, 0 to 1 (1)'],
  'log-level': ['logLevel', 'LOG_LEVEL', 'trace, debug, info, warn, error or silent (info)'],
};
/** Settings whose text is a list with commas. */
const LISTS: ReadonlySet<string> = new Set(['watchNamespaces']);
/** Secrets come by environment only: argv is readable by every process of the node. */
const SECRET_ENV: [string, string][] = [
  ['store.accessKey', 'STORE_ACCESS_KEY'],
  ['store.secretKey', 'STORE_SECRET_KEY'],
  ['tracing.headers', 'OTLP_HEADERS'],
];
const ENV_PREFIX = 'SKILL_OPERATOR_';

/** The text of `--help`. */
export function usage(): string {
  const rows = Object.entries(SETTINGS).map(
    ([name, [, env, help]]) => `  --${name.padEnd(22)} ${help}  [${ENV_PREFIX}${env}]`,
  );
  return [
    'skill-operator: reconciles MarketplaceSources and Skills of a Kubernetes cluster.',
    '',
    'Usage: skill-operator [--config FILE] [flags]',
    '',
    '  --config FILE            YAML file with the same settings (keys as in docs/guides/configuration.md)',
    ...rows,
    '',
    'HTTP_PROXY, HTTPS_PROXY and NO_PROXY count for Git.',
    `Keys come from ${SECRET_ENV.map(([, env]) => ENV_PREFIX + env).join(', ')} alone.`,
    'The cluster comes from KUBECONFIG, or from the service account of the pod.',
  ].join('\n');
}

function setPath(target: Record<string, unknown>, path: string, value: unknown): void {
  const [head, rest] = path.split('.', 2) as [string, string | undefined];
  if (rest === undefined) target[head] = value;
  else {
    target[head] = { ...(target[head] as object | undefined), [rest]: value };
  }
}

const listOf = (text: string): string[] => [...new Set(text.split(',').map((item) => item.trim()))].filter(Boolean);

function freeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const inner of Object.values(value)) freeze(inner);
  }
  return value;
}

/** Reads the settings; throws an Error whose message lists every wrong one with its name. `help: true` when --help was given. */
export function loadConfig(argv: string[], env: NodeJS.ProcessEnv = process.env): { config: Config } | { help: true } {
  const options = Object.fromEntries(Object.keys(SETTINGS).map((name) => [name, { type: 'string' as const }]));
  const { values } = parseArgs({
    args: argv,
    options: { ...options, config: { type: 'string' }, help: { type: 'boolean', short: 'h' } },
    allowPositionals: false,
  });
  if (values.help) return { help: true };
  const file = (values as Record<string, string | undefined>).config;
  const raw = file ? readSettingsFile(file) : {};
  overlay(raw, values as Record<string, string | undefined>, env);
  return { config: parseConfig(raw) };
}

/** Puts environment and flags over the settings of the file. */
function overlay(
  raw: Record<string, unknown>,
  flags: Record<string, string | undefined>,
  env: NodeJS.ProcessEnv,
): void {
  for (const [path, name] of SECRET_ENV) {
    const value = env[ENV_PREFIX + name];
    if (value) setPath(raw, path, value);
  }
  for (const [name, [path, variable]] of Object.entries(SETTINGS)) {
    const value = flags[name] ?? env[ENV_PREFIX + variable];
    if (value !== undefined && value !== '') setPath(raw, path, LISTS.has(path) ? listOf(value) : value);
    else if (value === '' && name.endsWith('-address')) setPath(raw, path, '');
  }
  raw.git = proxyFromEnvironment(raw.git, env);
}

const unusable = (lines: string[]): Error =>
  new Error(
    `the configuration cannot be used:\n${lines.map((line) => `  ${line}`).join('\n')}\nsee skill-operator --help`,
  );

/** The settings of a YAML file; never repeats its text, which may hold the S3 key. */
function readSettingsFile(file: string): Record<string, unknown> {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw unusable([`${file}: cannot be read (${(error as NodeJS.ErrnoException).code})`]);
  }
  const document = parseDocument(text, { prettyErrors: false });
  const [problem] = document.errors;
  if (problem) {
    const line = text.slice(0, problem.pos[0]).split('\n').length;
    throw unusable([`${file}: line ${line} is not valid YAML (${problem.code})`]);
  }
  const settings: unknown = document.toJS() ?? {};
  if (typeof settings !== 'object' || settings === null || Array.isArray(settings)) {
    throw unusable([`${file}: config must be a mapping of settings, like "logLevel: debug"`]);
  }
  return settings as Record<string, unknown>;
}

/** Checks raw settings; secrets are registered with the redactor. */
export function parseConfig(raw: unknown): Config {
  const parsed = Schema.safeParse(raw);
  if (!parsed.success) {
    throw unusable(parsed.error.issues.map((issue) => `${issue.path.join('.') || 'config'}: ${issue.message}`));
  }
  holdSecret(parsed.data.store.secretKey);
  for (const pair of parsed.data.tracing?.headers?.split(',') ?? []) holdSecret(pair.slice(pair.indexOf('=') + 1));
  holdProxySecrets(parsed.data.git);
  return freeze(parsed.data);
}

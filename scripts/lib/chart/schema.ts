import { z } from 'zod';
import { settingsSchema } from '../../../src/config.ts';

/** values.schema.json of the chart: its own values, and under `config` the settings file as the operator checks it. */

const text = z.string();
const name = z.string().max(253);
const map = z.record(z.string(), z.string());
const object = z.looseObject({});
const objects = z.array(object);
const port = z.int().min(1).max(65_535);
const mebibytes = z
  .string()
  .regex(/^[0-9]+(Mi|Gi)$/)
  .meta({ description: 'Whole mebibytes or gibibytes, such as 768Mi.' });
const quantity = z.union([z.string().min(1), z.number()]);
const quantities = z.record(z.string(), quantity);
const proxyURL = z.string().regex(/^(https?:\/\/[^@\s]+)?$/);

const values = z.strictObject({
  nameOverride: z.string().max(63),
  fullnameOverride: z.string().max(45),
  commonLabels: map,
  crds: z.strictObject({ enabled: z.boolean(), keep: z.boolean(), guard: z.boolean() }),
  image: z.strictObject({
    repository: z.string().min(1),
    tag: text,
    digest: z.string().regex(/^(sha256:[0-9a-f]{64})?$/),
    pullPolicy: z.enum(['Always', 'IfNotPresent', 'Never']),
  }),
  imagePullSecrets: z.array(z.strictObject({ name })),
  replicas: z.int().min(0).max(9),
  store: z.strictObject({
    existingSecret: name,
    accessKeyKey: z.string().min(1),
    secretKeyKey: z.string().min(1),
  }),
  mirrors: z.strictObject({ sizeLimit: mebibytes }),
  resources: z.strictObject({ requests: quantities.optional(), limits: z.looseObject({ memory: mebibytes }) }),
  heapPercent: z.int().min(20).max(90),
  serviceAccount: z.strictObject({ create: z.boolean(), name, annotations: map }),
  rbac: z.strictObject({ create: z.boolean(), aggregateToDefaultRoles: z.boolean() }),
  builds: z.strictObject({
    createNamespace: z.boolean(),
    namespaceLabels: map,
    serviceAccountAnnotations: map,
    quota: z.strictObject({ enabled: z.boolean(), hard: quantities }),
    limitRange: z.strictObject({ enabled: z.boolean(), requests: quantities, limits: quantities }),
    networkPolicy: z.strictObject({ enabled: z.boolean() }),
  }),
  webhook: z.strictObject({
    enabled: z.boolean(),
    service: z.strictObject({ type: z.enum(['ClusterIP', 'NodePort', 'LoadBalancer']), annotations: map }),
    ingress: z.strictObject({
      enabled: z.boolean(),
      className: name,
      host: z.string().regex(/^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$/),
      tlsSecret: name,
      annotations: map,
    }),
    httpRoute: z.strictObject({ parentRefs: objects, hostnames: z.array(name) }),
  }),
  networkPolicy: z.strictObject({
    enabled: z.boolean(),
    metricsFrom: objects,
    webhookFrom: objects,
    apiServerPorts: z.array(port).min(1),
    gitPorts: z.array(port).min(1),
    dnsTo: objects,
    extraEgress: objects,
  }),
  proxy: z.strictObject({ http: proxyURL, https: proxyURL, noProxy: text }),
  customCA: z.strictObject({ configMap: name, key: z.string().min(1) }),
  pdb: z.strictObject({ enabled: z.boolean(), maxUnavailable: z.union([z.int().min(1), z.string().regex(/^\d+%$/)]) }),
  priorityClassName: name,
  nodeSelector: map,
  tolerations: objects,
  affinity: object,
  topologySpreadConstraints: objects,
  terminationGracePeriodSeconds: z.int().min(5),
  podAnnotations: map,
  podLabels: map,
  podSecurityContext: object,
  extraEnv: z.array(z.looseObject({ name: z.string().min(1) })),
  extraArgs: z.array(text),
  extraVolumes: z.array(z.looseObject({ name: z.string().min(1) })),
  extraVolumeMounts: z.array(z.looseObject({ name: z.string().min(1), mountPath: z.string().min(1) })),
  extraObjects: z.array(z.looseObject({ apiVersion: z.string().min(1), kind: z.string().min(1) })),
  metrics: z.strictObject({
    serviceMonitor: z.strictObject({ enabled: z.boolean(), interval: z.string().regex(/^\d+[smh]$/), labels: map }),
    prometheusRule: z.strictObject({ enabled: z.boolean(), labels: map }),
    dashboard: z.strictObject({ enabled: z.boolean(), labels: map }),
  }),
  bundledS3: z.strictObject({
    enabled: z.boolean(),
    image: z.string().min(1),
    bucket: z.string().regex(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/),
    size: z.string().regex(/^([0-9]+(Mi|Gi|Ti))?$/),
    storageClassName: name,
    resources: object,
  }),
  /** Helm adds it to the values of a chart that is a dependency of another. */
  global: object.optional(),
});

/** A schema of the JSON kind, as far as it is changed here. */
interface Schema {
  properties?: Record<string, Schema>;
  required?: string[];
  [keyword: string]: unknown;
}

/** What a Secret holds, or the chart alone knows. */
const NOT_A_VALUE: readonly (readonly string[])[] = [
  ['store', 'accessKey'],
  ['store', 'secretKey'],
  ['tracing', 'headers'],
  ['operatorNamespace'],
  ['mirrorDir'],
  ['metricsAddress'],
  ['webhookAddress'],
  ['leaderElection'],
];
/** What the chart fills in, or asks for with a message that names the way out. */
const FILLED_IN: readonly (readonly string[])[] = [
  ['store', 'endpoint'],
  ['store', 'bucket'],
  ['build', 'namespace'],
  ['build', 'operatorImage'],
];

function parentOf(schema: Schema, path: readonly string[]): Schema {
  const parent = path.slice(0, -1).reduce<Schema | undefined>((at, key) => at?.properties?.[key], schema);
  const key = path.at(-1) ?? '';
  if (!parent?.properties?.[key])
    throw new Error(`the settings have no ${path.join('.')}; mend scripts/lib/chart/schema.ts`);
  return parent;
}

function configSchema(): Schema {
  const { $schema: _, ...schema } = structuredClone(settingsSchema()) as Schema;
  for (const path of [...NOT_A_VALUE, ...FILLED_IN]) {
    const parent = parentOf(schema, path);
    parent.required = parent.required?.filter((key) => key !== path.at(-1)) ?? [];
  }
  for (const path of NOT_A_VALUE) delete parentOf(schema, path).properties?.[path.at(-1) ?? ''];
  return { ...schema, required: [] };
}

/** Largest number that zod writes for an int; it says nothing and hides what does. */
const dropBounds = (_key: string, value: unknown): unknown => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const { maximum, minimum, ...rest } = value as Schema;
  return {
    ...rest,
    ...(minimum === undefined || minimum === Number.MIN_SAFE_INTEGER ? {} : { minimum }),
    ...(maximum === undefined || maximum === Number.MAX_SAFE_INTEGER ? {} : { maximum }),
  };
};

/** The text of values.schema.json. */
export function valuesSchema(): string {
  const own = z.toJSONSchema(values, { target: 'draft-7', io: 'input' }) as Schema;
  const schema = {
    ...own,
    title: 'Values of the chart skill-operator',
    properties: { ...own.properties, config: configSchema() },
    required: [],
  };
  return `${JSON.stringify(schema, dropBounds, 2)}\n`;
}

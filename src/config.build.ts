import { z } from 'zod';
import { BUILD_DEFAULTS } from './build/settings.ts';

/** Settings of builds and engines; they come from the file alone (--config). */

const text = z.string().min(1);
const count = z.int().min(1);
const quantities = z.record(z.string(), text);
const resources = z.strictObject({ requests: quantities, limits: quantities });
const stringMap = z.record(z.string(), text);

/** Builder of production: the maintained fork of Kaniko, v1.28.3, by tag; an installation pins its digest. */
const BUILDER = 'ghcr.io/osscontainertools/kaniko:v1.28.3';

/** How images are built; absent: bring-your-own skills wait with BuildNotConfigured. */
export const buildSchema = z.strictObject({
  namespace: text,
  serviceAccount: text.default(BUILD_DEFAULTS.serviceAccount),
  operatorImage: text,
  jobsCommand: z
    .array(text)
    .min(1)
    .default([...BUILD_DEFAULTS.jobsCommand]),
  builderImage: text.regex(/@sha256:[0-9a-f]{64}$/, `must be pinned by digest, such as ${BUILDER}@sha256:…`),
  imagePullSecrets: z.array(text).optional(),
  architecture: text.default(BUILD_DEFAULTS.architecture),
  registry: z.strictObject({
    host: text,
    prefix: z.string().default(''),
    insecure: z.boolean().optional(),
    /** Secret of the build namespace that may push. */
    pushSecret: text.optional(),
    /** Secret of the operator's namespace that may read and delete. */
    credentialSecret: text.optional(),
    caFile: text.optional(),
  }),
  baseImages: z
    .strictObject({
      mirrors: z.array(text).optional(),
      map: stringMap.optional(),
      strict: z.boolean().optional(),
      insecure: z.array(text).optional(),
    })
    .optional(),
  caBundle: z.strictObject({ configMap: text, key: text }).optional(),
  proxy: z.strictObject({ http: text.optional(), https: text.optional(), noProxy: text.optional() }).optional(),
  deadlines: z
    .strictObject({ pendingSeconds: count, activeSeconds: count, keepSeconds: count, removalSeconds: count })
    .partial()
    .default({})
    .transform((given) => ({ ...BUILD_DEFAULTS.deadlines, ...given })),
  resources: z
    .strictObject({ fetch: resources, build: resources, push: resources })
    .partial()
    .default({})
    .transform((given) => ({ ...BUILD_DEFAULTS.resources, ...given })),
  maxImageBytes: count.default(BUILD_DEFAULTS.maxImageBytes),
  placement: z
    .strictObject({
      nodeSelector: stringMap.optional(),
      tolerations: z.array(z.record(z.string(), z.union([z.string(), z.number()]))).optional(),
      runtimeClassName: text.optional(),
      hostUsers: z.boolean().optional(),
      priorityClassName: text.optional(),
    })
    .optional(),
  limits: z
    .strictObject({ total: count, perNamespace: count })
    .partial()
    .default({})
    .transform((given) => ({ ...BUILD_DEFAULTS.limits, ...given })),
  network: z
    .strictObject({
      blocked: z.array(text).optional(),
      egress: z.array(z.record(z.string(), z.unknown())).default([]),
    })
    .default({ egress: [] }),
  /** Build although registry or bucket let everybody write; for test installations. */
  allowAnonymousWrites: z.boolean().default(false),
});

const template = z
  .strictObject({
    cpuMillis: count.default(1000),
    memoryMiB: count.default(1024),
    writableLayerMiB: z.int().min(2048).default(2048),
  })
  .default({ cpuMillis: 1000, memoryMiB: 1024, writableLayerMiB: 2048 });

const engine = {
  url: z.url({ protocol: /^https?$/ }),
  /** Secret of the operator's namespace with the key under `apiKey`; absent: the engine asks for none. */
  keySecret: text.optional(),
  caFile: text.optional(),
  /** Secret of type kubernetes.io/dockerconfigjson with which the engine pulls images. */
  pullSecret: text.optional(),
  resources: template,
  maxConcurrent: count.default(4),
};

/** The engines of this installation. */
export const enginesSchema = z
  .strictObject({
    cubesandbox: z
      .strictObject({ ...engine, withCubeCA: z.boolean().optional(), plainHttpRegistry: z.boolean().optional() })
      .optional(),
    e2b: z.strictObject({ ...engine, startCommand: text.optional(), readyCommand: text.optional() }).optional(),
  })
  .default({});

export type BuildConfig = z.infer<typeof buildSchema>;
export type EnginesConfig = z.infer<typeof enginesSchema>;

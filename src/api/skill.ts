import { z } from 'zod';
import { cel, PATH_RULES } from './cel.ts';
import {
  ATOMIC,
  count,
  deletionPolicy,
  gitRef,
  gitURL,
  interval,
  localReference,
  type Metadata,
  observedGeneration,
  suspend,
  text,
  time,
  timeout,
  versionHistoryLimit,
} from './common.ts';
import { type Condition, conditions } from './conditions.ts';

const objectId = (description: string) =>
  z
    .string()
    .max(64)
    .meta({
      description,
      ...cel({
        rule: "self.matches('^[0-9a-f]{40}([0-9a-f]{24})?$')",
        message: 'must be a full Git object id of 40 (or 64) lower-case hex digits',
      }),
    });

const source = z
  .object({
    marketplaceRef: localReference('MarketplaceSource').optional(),
    git: z
      .object({
        url: gitURL,
        ref: gitRef.optional(),
        interval: interval.optional(),
        timeout: timeout.optional(),
        secretRef: localReference('Secret').optional(),
        proxySecretRef: localReference('Secret').optional(),
      })
      .optional()
      .meta({ description: 'A Git repository of its own, for a Skill that a person applies.' }),
  })
  .meta({
    description: 'Where the content comes from.',
    ...cel({
      rule: 'has(self.marketplaceRef) != has(self.git)',
      message:
        'must set exactly one of marketplaceRef and git; for a Skill that you apply yourself type git: {url: https://…}',
    }),
  });

/** Schema of Skill.spec. No defaults: effective values are in defaults.ts. */
const skillSpec = z
  .object({
    source,
    plugin: z
      .string()
      .min(1)
      .max(255)
      .meta({
        description: 'Directory name of the plugin.',
        ...cel({
          rule: "!self.startsWith('-') && self != '.' && self != '..' && !self.matches('[/\\\\x00-\\\\x1f\\\\x7f\\\\\\\\]')",
          message: 'must be the name of one directory, without "/", a leading "-", "\\" or control characters',
        }),
      }),
    path: z
      .string()
      .max(1024)
      .meta({
        description: 'Directory of the skill in the source, such as plugins/docs/skills/pdf.',
        ...cel(...PATH_RULES),
      }),
    revision: z
      .object({
        commit: objectId('Commit in which the directory was last seen to change.'),
        tree: objectId('Id of the tree of the directory.'),
      })
      .optional()
      .meta({ description: 'Written by the source controller on generated Skills.' }),
    suspend: suspend.optional(),
    deletionPolicy: deletionPolicy.optional(),
    versionHistoryLimit: versionHistoryLimit.optional(),
  })
  .meta({
    description: 'Which skill to serve.',
    ...cel(
      {
        rule: '!has(self.revision) || has(self.source.marketplaceRef)',
        message: 'must not set revision with source.git; pin a commit with source.git.ref.commit',
      },
      {
        rule: "!has(self.source.git) || self.path.matches('^(.+/)?plugins/[^/]+/skills/[^/]+$')",
        message: 'must have a path that ends in plugins/<plugin>/skills/<skill>, such as plugins/docs/skills/pdf',
      },
      {
        rule: "!has(self.source.git) || !self.path.matches('^(.+/)?plugins/[^/]+/skills/[^/]+$') || self.path.split('/')[size(self.path.split('/')) - 3] == self.plugin",
        message: 'must have the plugin that the path names: plugins/<plugin>/skills/<skill>',
      },
    ),
  });

const finding = z
  .object({
    code: text(64, 'Stable code of docs/errors.md.'),
    path: text(512, 'File, relative to the directory of the skill; empty: the directory itself.'),
    line: count('1-based line.').optional(),
    column: count('1-based column.').optional(),
    message: text(1024, 'What is wrong.'),
    hint: text(1024, 'What to type.'),
  })
  .meta({ description: 'A broken rule, or something the author should know.' });

const versionFields = {
  version: text(12, 'The first twelve hex digits of digest.'),
  digest: text(64, 'SHA-256 over the canonical listing of the package.'),
  manifestSHA256: text(64, 'SHA-256 of the stored manifest.json.'),
  commit: text(64, 'Commit that the content was read from.'),
  runtime: text(64, 'Runtime of the frontmatter.'),
  engine: text(64, 'Engine that runs it; absent for prompt-only.').optional(),
  templateID: text(256, 'Id of the template at the engine.').optional(),
  image: text(1024, 'Image by digest, of a skill that brings its own.').optional(),
  settings: text(
    64,
    'Hash of the engine settings that the template was made with; its name depends on them.',
  ).optional(),
  files: count('Number of files.'),
  bytes: count('Size of all files.'),
};

const version = z.object(versionFields).meta({ description: 'The version that is handed out.' });

const candidate = z
  .object({
    ...versionFields,
    phase: z
      .enum(['Queued', 'Building', 'Registering', 'Held', 'Failed'])
      .meta({ description: 'Queued, Building, Registering, Held or Failed.' }),
    attempt: count('Number of the current or last build attempt.').optional(),
    jobName: text(253, 'Name of the build Job.').optional(),
    buildID: text(256, 'Identity of the build.').optional(),
    startedAt: time('When the current step began.').optional(),
    retryAt: time('When the next attempt is due.').optional(),
    reason: text(128, 'A reason of docs/errors.md.').optional(),
    message: text(2048, 'Why the candidate waits or failed, and what to do.').optional(),
    logTail: text(4096, 'The end of the build log.').optional(),
  })
  .meta({ description: 'The version that is on its way to be served.' });

const retired = z
  .object({
    ...versionFields,
    state: z.enum(['Kept', 'Deleting']).meta({ description: 'Kept: ready to return. Deleting: being removed.' }),
  })
  .meta({ description: 'A version that was replaced.' });

/** Schema of Skill.status. */
const skillStatus = z
  .object({
    observedGeneration: observedGeneration.optional(),
    skillName: text(64, 'Bare name of the skill.').optional(),
    description: text(
      4096,
      'Description of the served version, or of the newest valid one while none is served.',
    ).optional(),
    runtime: text(64, 'Runtime of that version.').optional(),
    tier: count('0: no sandbox, 1: platform template, 2: own image.').optional(),
    observed: z
      .object({
        commit: text(64, 'Commit of the last evaluation.').optional(),
        tree: text(64, 'Tree of the last evaluation.').optional(),
        config: text(128, 'Hash of the rules and settings of the last evaluation.').optional(),
      })
      .optional()
      .meta({ description: 'What the last evaluation looked at.' }),
    lastHandledReconcileAt: text(256, 'Value of the annotation requestedAt that the last pass answered.').optional(),
    lastHandledRebuild: text(256, 'Value of the annotation rebuild that was last answered.').optional(),
    templateIDs: z
      .record(z.string(), z.string().max(256))
      .optional()
      .meta({ maxProperties: 16, description: 'Engine to template id of the served version.' }),
    served: version.optional(),
    candidate: candidate.optional(),
    retired: z
      .array(retired)
      .max(10)
      .optional()
      .meta({ ...ATOMIC, description: 'Replaced versions, newest first.' }),
    violations: z
      .array(finding)
      .max(20)
      .optional()
      .meta({ ...ATOMIC, description: 'Broken rules of the newest content; the first twenty.' }),
    violationCount: count('Number of all broken rules.').optional(),
    warnings: z
      .array(finding)
      .max(20)
      .optional()
      .meta({ ...ATOMIC, description: 'What the author should know; the first twenty.' }),
    conditions,
  })
  .meta({ description: 'What the operator found and did.' });

/** Parse schema of the whole object; unknown fields are dropped. */
export const skillSchema = z.object({ spec: skillSpec, status: skillStatus.optional() });

export type SkillSpec = z.infer<typeof skillSpec>;
export type SkillStatus = Omit<z.infer<typeof skillStatus>, 'conditions'> & { conditions?: Condition[] | undefined };
/** The served version. */
export type Version = z.infer<typeof version>;
/** The version on its way. */
export type Candidate = z.infer<typeof candidate>;
/** A replaced version. */
export type Retired = z.infer<typeof retired>;
/** A violation or warning in the status. */
export type StatusFinding = z.infer<typeof finding>;

/** Skill as the API server hands it out. */
export interface Skill {
  apiVersion?: string;
  kind?: string;
  metadata: Metadata;
  spec: SkillSpec;
  status?: SkillStatus;
}

import { z } from 'zod';
import { cel } from './cel.ts';
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
  SET,
  suspend,
  text,
  timeout,
  versionHistoryLimit,
} from './common.ts';
import { type Condition, conditions } from './conditions.ts';
import { archive, github, gitSubdir, inline } from './sourcekinds.ts';

/** Values of spec.type. `npm`, `file` and `directory` are reserved and refused. */
const SOURCE_TYPES = ['github', 'git', 'git-subdir', 'archive', 'inline'] as const;

const UNION_RULE = [
  ['github', 'github'],
  ['git', 'git'],
  ['git-subdir', 'gitSubdir'],
  ['archive', 'archive'],
  ['inline', 'inline'],
]
  .map(([type, member]) => `has(self.${member}) == (self.type == '${type}')`)
  .join(' && ');

const KNOWN_TYPE = `self.type in ['${SOURCE_TYPES.join("', '")}']`;

const globs = (what: string) =>
  z
    .array(z.string().min(1).max(256))
    .max(64)
    .optional()
    .meta({ ...SET, description: `Globs over <plugin>/<skill>, such as docs/*: ${what}` });

const prune = z
  .object({
    policy: z.enum(['Delete', 'Keep']).optional().meta({
      description:
        'What happens to the Skill of a directory that vanished: Delete removes it, Keep leaves it as it is. Delete when absent.',
    }),
    maxPercent: z.int().min(0).max(100).optional().meta({
      format: 'int32',
      description:
        'When more than this share of the Skills (and more than three) vanish at once, nothing is deleted until the revision is allowed. 50 when absent.',
    }),
  })
  .meta({ description: 'What happens when skills vanish from the source.' });

const skillTemplate = z
  .object({
    deletionPolicy: deletionPolicy.optional(),
    versionHistoryLimit: versionHistoryLimit.optional(),
    labels: z
      .record(z.string(), z.string().max(63))
      .optional()
      .meta({
        maxProperties: 32,
        description: 'Labels of every Skill.',
        ...cel(
          {
            rule: "self.all(k, !k.matches('^([^/]*[.])?skills[.]tfrobot[.]io/') && k != 'app.kubernetes.io/managed-by')",
            message:
              'must not use keys of skills.tfrobot.io/ or app.kubernetes.io/managed-by; the operator writes those itself',
          },
          {
            rule: "self.all(k, size(k) <= 317 && k.matches('^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$') && self[k].matches('^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$'))",
            message: 'must hold label keys and values as Kubernetes takes them, such as team: docs',
          },
        ),
      }),
  })
  .meta({ description: 'Copied to every Skill of the source.' });

/** Schema of MarketplaceSource.spec. No defaults: effective values are in defaults.ts. */
const marketplaceSourceSpec = z
  .object({
    type: z.enum(SOURCE_TYPES).meta({
      description: 'Kind of the source; the member of the same name must be set.',
      ...cel({
        rule: KNOWN_TYPE.replace('self.type', 'self'),
        message: `unsupported source type: must be one of ${SOURCE_TYPES.join(', ')}`,
      }),
    }),
    github: github.optional(),
    git: z.object({ url: gitURL }).optional().meta({ description: 'A Git repository; set with type git.' }),
    gitSubdir: gitSubdir.optional(),
    archive: archive.optional(),
    inline: inline.optional(),
    ref: gitRef.optional(),
    interval: interval.optional(),
    timeout: timeout.optional(),
    suspend: suspend.optional(),
    secretRef: localReference('Secret').optional().meta({
      description:
        'Secret with the credentials: username and password, bearerToken, identity and known_hosts, ca.crt, or the keys of a GitHub App.',
    }),
    proxySecretRef: localReference('Secret')
      .optional()
      .meta({ description: 'Secret with address, username and password of a proxy.' }),
    webhook: z
      .object({ secretRef: localReference('Secret') })
      .optional()
      .meta({
        description:
          'Lets a push notification of the Git server start a pass. Deliveries go to /hooks/<namespace>/<name> of the webhook receiver; the Secret has key token.',
      }),
    include: globs('only these are taken.'),
    exclude: globs('these are left out.'),
    prune: prune.optional(),
    skillTemplate: skillTemplate.optional(),
  })
  .meta({
    description: 'What to pull, how often, and what becomes of it.',
    ...cel(
      {
        rule: `!(${KNOWN_TYPE}) || (${UNION_RULE})`,
        message:
          'must set exactly the member that belongs to type: github with type github, git with git, gitSubdir with git-subdir, archive with archive, inline with inline; remove the others',
      },
      {
        rule: "!has(self.ref) || !(self.type in ['archive', 'inline'])",
        message: 'must not set ref with type archive or inline; remove it (a ref selects a Git commit)',
      },
    ),
  });

/** Schema of MarketplaceSource.status. */
const marketplaceSourceStatus = z
  .object({
    observedGeneration: observedGeneration.optional(),
    revision: text(1024, 'Revision that the Skills were taken from, such as main@sha1:<commit>.').optional(),
    inventory: text(128, 'Hash over name and applied content of every Skill that the last pass left live.').optional(),
    observedSpec: text(128, 'Hash of the spec that the last pass carried out.').optional(),
    skills: z
      .object({
        total: count('All Skills of this source.').optional(),
        ready: count('Skills that serve what the source points at.').optional(),
        invalid: count('Skills whose content breaks the protocol.').optional(),
        building: count('Skills with a build or a registration under way.').optional(),
        failed: count('Skills whose build or registration failed.').optional(),
        waiting: count('Skills that wait for something else.').optional(),
      })
      .optional()
      .meta({ description: 'Counts of the Skills; the five states add up to total.' }),
    problems: z
      .array(
        z.object({
          path: text(1024, 'Path in the source, or the name of an object.'),
          reason: text(128, 'A reason of docs/errors.md.'),
          message: text(1024, 'What is wrong and what to do.'),
        }),
      )
      .max(20)
      .optional()
      .meta({ ...ATOMIC, description: 'What could not become a Skill; the first twenty.' }),
    lastHandledReconcileAt: text(256, 'Value of the annotation requestedAt that the last pass answered.').optional(),
    lastWebhookAt: text(64, 'When the last webhook delivery was accepted; a new value starts a pass.').optional(),
    conditions,
  })
  .meta({ description: 'What the operator found and did.' });

/** Parse schema of the whole object; unknown fields are dropped. */
export const marketplaceSourceSchema = z.object({
  spec: marketplaceSourceSpec,
  status: marketplaceSourceStatus.optional(),
});

export type MarketplaceSourceSpec = z.infer<typeof marketplaceSourceSpec>;
type MarketplaceSourceStatus = Omit<z.infer<typeof marketplaceSourceStatus>, 'conditions'> & {
  conditions?: Condition[] | undefined;
};
export type SkillCounts = Required<NonNullable<MarketplaceSourceStatus['skills']>>;
export type Problem = NonNullable<MarketplaceSourceStatus['problems']>[number];

/** MarketplaceSource as the API server hands it out. */
export interface MarketplaceSource {
  apiVersion?: string;
  kind?: string;
  metadata: Metadata;
  spec: MarketplaceSourceSpec;
  status?: MarketplaceSourceStatus;
}

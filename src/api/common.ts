import { z } from 'zod';
import { cel, durationRules, FULL_REF_RULES, GIT_URL_RULES, refNameRules } from './cel.ts';

/** The parts of metadata that the rooms read; structurally the `ObjectMeta` of the kube room. */
export interface Metadata {
  name: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  finalizers?: string[];
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  ownerReferences?: {
    apiVersion: string;
    kind: string;
    name: string;
    uid: string;
    controller?: boolean;
    blockOwnerDeletion?: boolean;
  }[];
}

/** Reference to an object of the same namespace. */
export const localReference = (what: string) =>
  z
    .object({
      name: z
        .string()
        .min(1)
        .max(253)
        .meta({
          description: `Name of the ${what}, in the same namespace.`,
          ...cel({
            rule: "self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",
            message: 'must be an object name: lower-case letters, digits, "-" and ".", such as git-credentials',
          }),
        }),
    })
    .meta({ description: `Reference to a ${what} of the same namespace.` });

/** Address of a Git repository. */
export const gitURL = z
  .string()
  .max(2048)
  .meta({
    description: 'Address of the repository: https://, http:// or ssh://. Credentials go into the Secret of secretRef.',
    ...cel(...GIT_URL_RULES),
  });

/** Git ref; the first set member in the order commit, name, semver, tag, branch counts; none: the HEAD of the remote. */
export const gitRef = z
  .object({
    commit: z
      .string()
      .max(64)
      .optional()
      .meta({
        description: 'Full commit id. Wins over every other member.',
        ...cel({
          rule: "self.matches('^[0-9a-f]{40}$')",
          message: 'must be a full commit id of 40 lower-case hex digits; git rev-parse HEAD prints it',
        }),
      }),
    name: z
      .string()
      .max(512)
      .optional()
      .meta({ description: 'Full ref name, such as refs/pull/7/head.', ...cel(...FULL_REF_RULES) }),
    semver: z
      .string()
      .min(1)
      .max(128)
      .optional()
      .meta({
        description: 'Range of semantic versions; the highest matching tag is used.',
        ...cel({
          rule: "!self.startsWith('-') && self.matches('^[0-9A-Za-z.*+|<>=~^, -]+$')",
          message: 'must be a range of semantic versions, such as ">=1.2.0 <2.0.0" or "^1.2"',
        }),
      }),
    tag: z
      .string()
      .min(1)
      .max(255)
      .optional()
      .meta({ description: 'Tag name.', ...cel(...refNameRules('tag', 'v1.2.0')) }),
    branch: z
      .string()
      .min(1)
      .max(255)
      .optional()
      .meta({ description: 'Branch name.', ...cel(...refNameRules('branch', 'main')) }),
  })
  .meta({
    description:
      'Which commit to use. The first member that is set counts, in this order: commit, name, semver, tag, branch. None: the HEAD of the remote.',
  });

/** How often the source is looked at; Go duration. */
export const interval = z
  .string()
  .max(32)
  .meta({
    description: 'How often to look for changes, jittered. 5m when absent.',
    ...cel(...durationRules('10s', '168h', '5m or 1h30m')),
  });

/** Deadline of one Git process or request; Go duration. */
export const timeout = z
  .string()
  .max(32)
  .meta({
    description: 'Deadline of each Git operation. 60s when absent.',
    ...cel(...durationRules('1s', '1h', '60s')),
  });

/** Deletion policy of templates and images. */
export const deletionPolicy = z.enum(['Delete', 'Orphan']).meta({
  description:
    'What happens to templates and images that were made for the Skill when it is deleted: Delete removes them, Orphan leaves them. Delete when absent.',
});

/** How many replaced versions stay ready to return. */
export const versionHistoryLimit = z.int().min(0).max(5).meta({
  format: 'int32',
  description: 'How many replaced versions are kept so that their return needs no build. 1 when absent.',
});

/** Pauses the object. */
export const suspend = z.boolean().meta({
  description: 'Pauses fetching, building and registering. Deletion goes on. false when absent.',
});

/** Generation that the status describes. */
export const observedGeneration = z.int().meta({
  format: 'int64',
  default: -1,
  description: 'metadata.generation of the last whole pass; -1 before the first.',
});

/** Text in a status, capped so that a status stays small. */
export const text = (maxLength: number, description: string) => z.string().max(maxLength).meta({ description });

/** Point in time in a status, RFC 3339. */
export const time = (description: string) => z.string().meta({ format: 'date-time', description });

/** Whole number in a status. */
export const count = (description: string) => z.int().meta({ format: 'int64', description });

/** A list that is always written as a whole by one writer. */
export const ATOMIC = { 'x-kubernetes-list-type': 'atomic' };
/** A list of distinct scalars. */
export const SET = { 'x-kubernetes-list-type': 'set' };

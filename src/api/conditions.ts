import { z } from 'zod';

/** Condition types of a MarketplaceSource. */
export const SOURCE_CONDITIONS = [
  'Ready',
  'Reconciling',
  'Stalled',
  'Fetched',
  'SkillsHealthy',
  'PruneBlocked',
] as const;

/** Condition types of a Skill. `Fetched` only on a Skill with its own Git source. */
export const SKILL_CONDITIONS = [
  'Ready',
  'Reconciling',
  'Stalled',
  'Serving',
  'Fetched',
  'Validated',
  'Materialized',
  'Built',
  'Registered',
  'NameConflict',
] as const;

/** Types of negative polarity: present only while True (kstatus). */
export const ABNORMAL_TRUE: ReadonlySet<string> = new Set(['Reconciling', 'Stalled', 'NameConflict', 'PruneBlocked']);

/** Longest message that a condition may carry; longer text is cut by its writer. */
export const MAX_CONDITION_MESSAGE = 2048;

const condition = z
  .object({
    type: z.string().max(64).meta({ description: 'Type of the condition.' }),
    status: z.string().max(7).meta({ description: 'True, False or Unknown.' }),
    observedGeneration: z.int().optional().meta({
      format: 'int64',
      description: 'metadata.generation that the condition was computed for.',
    }),
    lastTransitionTime: z.string().meta({ format: 'date-time', description: 'When status last changed.' }),
    reason: z.string().max(128).meta({ description: 'A reason of docs/errors.md.' }),
    message: z.string().max(MAX_CONDITION_MESSAGE).meta({ description: 'What is the case and what to do next.' }),
  })
  .meta({ description: 'One condition, as metav1.Condition.' });

/** Schema of `status.conditions`: a map by type, so that two field managers can share it. */
export const conditions = z
  .array(condition)
  .max(16)
  .optional()
  .meta({
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['type'],
    description: 'Reconciling, Stalled, NameConflict and PruneBlocked are present only while True.',
  });

/** metav1.Condition. */
export interface Condition {
  type: string;
  status: 'True' | 'False' | 'Unknown';
  observedGeneration?: number;
  lastTransitionTime: string;
  reason: string;
  message: string;
}

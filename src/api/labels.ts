/** API group of both resources; also the domain of every label and annotation of this product. */
export const GROUP = 'skills.tfrobot.io';
/** The one served and stored version. */
export const VERSION = 'v1alpha1';
/** `apiVersion` of both resources. */
export const API_VERSION = `${GROUP}/${VERSION}`;

/** Annotations that people (or tools) set and the controllers answer. */
export const ANNOTATIONS = {
  /** Any new value asks for a pass now; answered in status.lastHandledReconcileAt. */
  requestedAt: `${GROUP}/requestedAt`,
  /** Skill, any new value: build the served version again; answered in status.lastHandledRebuild. */
  rebuild: `${GROUP}/rebuild`,
  /** MarketplaceSource, value a revision: lets that revision prune more than spec.prune.maxPercent. */
  allowPrune: `${GROUP}/allow-prune`,
  /** Skill, set by the source controller: name of the Skill that takes over this one's bare name. */
  handover: `${GROUP}/handover`,
  /** Secret, comma-separated host names: the values may be sent to these hosts alone. */
  hosts: `${GROUP}/hosts`,
} as const;

/** Labels of generated Skills; values that cannot be a label are shortened by `labelValue` of names.ts. */
export const LABELS = {
  /** Name of the MarketplaceSource. */
  source: `${GROUP}/source`,
  /** UID of the MarketplaceSource. */
  sourceUID: `${GROUP}/source-uid`,
  /** Directory name of the plugin. */
  plugin: `${GROUP}/plugin`,
  /** Always `skill-operator`. */
  managedBy: 'app.kubernetes.io/managed-by',
} as const;

/** Value of the managed-by label. */
export const MANAGED_BY = 'skill-operator';

/** Finalizer of a Skill that holds a Job, an image or a template outside the cluster. */
export const FINALIZER = `${GROUP}/external-objects`;

/** Field managers of server-side apply: one writer per field (docs: the table of field owners). */
export const FIELD_MANAGERS = {
  /** Spec, labels and ownerReferences of generated Skills; status of the source. */
  source: 'skill-operator-source',
  /** Counts and SkillsHealthy in the status of the source. */
  counts: 'skill-operator-counts',
  /** Status and finalizer of a Skill. */
  skill: 'skill-operator-skill',
  /** status.lastWebhookAt of the source, written by every replica. */
  webhook: 'skill-operator-webhook',
} as const;

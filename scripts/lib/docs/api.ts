import { SKILL_CONDITIONS, SOURCE_CONDITIONS } from '../../../src/api/conditions.ts';
import { customResourceDefinitions, type SchemaNode } from '../../../src/api/crd.ts';
import { ANNOTATIONS, API_VERSION, FIELD_MANAGERS, FINALIZER, LABELS, MANAGED_BY } from '../../../src/api/labels.ts';
import { specDefaults } from './defaults.ts';
import { type FieldRow, fieldRows, ruleRows } from './fields.ts';

interface Crd {
  spec: {
    names: { kind: string; plural: string; shortNames: string[] };
    versions: {
      schema: { openAPIV3Schema: SchemaNode };
      additionalPrinterColumns: { name: string; jsonPath: string }[];
    }[];
  };
}

const ANNOTATION_TEXTS = {
  requestedAt: [
    'MarketplaceSource, Skill',
    'Any new value asks for a pass now. Answered in `status.lastHandledReconcileAt`.',
  ],
  rebuild: [
    'Skill',
    'Any new value builds the image of the served version again. Answered in `status.lastHandledRebuild`.',
  ],
  allowPrune: ['MarketplaceSource', 'A revision: lets this one commit delete more than `spec.prune.maxPercent`.'],
  handover: ['Skill', 'Written by the operator: the Skill that takes over the bare name of this one.'],
  hosts: ['Secret', 'Host names, separated by commas: the values are sent to these hosts alone.'],
} as const satisfies Record<keyof typeof ANNOTATIONS, readonly [string, string]>;

const LABEL_TEXTS = {
  source: 'Name of the MarketplaceSource.',
  sourceUID: 'UID of the MarketplaceSource.',
  plugin: 'Directory name of the plugin.',
  managedBy: `Always \`${MANAGED_BY}\`.`,
} as const satisfies Record<keyof typeof LABELS, string>;

const MANAGER_TEXTS = {
  source: 'Spec, labels and owner of generated Skills; status of a source without its counts.',
  counts: 'Counts and `SkillsHealthy` in the status of a source.',
  skill: 'Status and finalizer of a Skill.',
  webhook: '`lastWebhookAt` in the status of a source; the webhook receiver of every replica.',
} as const satisfies Record<keyof typeof FIELD_MANAGERS, string>;

const SHARED_CONDITIONS = {
  Reconciling: 'Work goes on. Present only while True.',
  Stalled: 'It cannot go on until something is changed. Present only while True.',
};

const SOURCE_TEXTS = {
  ...SHARED_CONDITIONS,
  Ready: 'The newest revision is fetched and its Skills are applied, whatever their health.',
  Fetched: 'The revision is fetched.',
  SkillsHealthy: 'Every Skill of the source is Ready.',
  PruneBlocked: 'So much vanished at once that nothing is deleted until it is allowed. Present only while True.',
} as const satisfies Record<(typeof SOURCE_CONDITIONS)[number], string>;

const SKILL_TEXTS = {
  ...SHARED_CONDITIONS,
  Ready: 'What the spec points at is what is served.',
  Serving: 'Some version is served; hosts go by this one.',
  Fetched: 'The revision is fetched. Only on a Skill with a Git source of its own.',
  Validated: 'The content follows the protocol.',
  Materialized: 'The package is in the bucket.',
  Built: 'The image is built, or none is needed.',
  Registered: 'The template id is known, or none is needed.',
  NameConflict: 'Another Skill of the namespace serves this bare name. Present only while True.',
} as const satisfies Record<(typeof SKILL_CONDITIONS)[number], string>;

const cell = (text: string): string => text.replaceAll('\\', '\\\\').replaceAll('|', '\\|').replaceAll('<', '&lt;');
const code = (text: string): string => `\`${text}\``;

/** A Markdown table. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)].join('\n');
}

const specTable = (rows: readonly FieldRow[], defaults: ReadonlyMap<string, string>): string =>
  table(
    ['field', 'type', 'default', 'meaning'],
    rows.map(({ path, type, required, text }) => [
      code(path),
      type,
      required ? '**required**' : defaults.has(path) ? code(defaults.get(path) ?? '') : '–',
      cell(text),
    ]),
  );

const statusTable = (rows: readonly FieldRow[]): string =>
  table(
    ['field', 'type', 'meaning'],
    rows.map(({ path, type, text }) => [code(path), type, cell(text)]),
  );

const rulesTable = (schema: SchemaNode): string =>
  table(
    ['field', 'the API server refuses what breaks this rule'],
    ruleRows(schema).map(({ paths, message }) => [paths.map(code).join(', '), cell(message)]),
  );

function kindSection(crd: Crd, conditions: readonly (readonly [type: string, text: string])[]): string {
  const { kind, plural, shortNames } = crd.spec.names;
  const [version] = crd.spec.versions;
  if (!version) throw new Error(`the CRD of ${kind} has no version`);
  const schema = version.schema.openAPIV3Schema;
  const { spec, status } = schema.properties as { spec: SchemaNode; status: SchemaNode };
  const columns = version.additionalPrinterColumns.map(({ name }) => name).join(', ');
  return `## ${kind}

${schema.description as string} Namespaced, plural ${code(plural)}, short name ${shortNames.map(code).join(', ')}. \`kubectl get\` shows ${columns}.

### ${kind} spec

${specTable(fieldRows(spec, 'spec'), specDefaults(kind))}

### ${kind} rules

${rulesTable(schema)}

### ${kind} status

${statusTable(fieldRows(status, 'status'))}

### ${kind} conditions

${table(
  ['type', 'True means'],
  conditions.map(([type, text]) => [code(type), text]),
)}
`;
}

const keysOf = <T extends object>(object: T) => Object.keys(object) as (keyof T)[];

/** docs/api.md: both kinds field by field, out of the CRDs, the defaults and the names of src/api. */
export function apiReference(): string {
  const { marketplacesources, skills } = customResourceDefinitions() as unknown as Record<string, Crd>;
  if (!marketplacesources || !skills) throw new Error('src/api/crd.ts must give marketplacesources and skills');
  return `# API reference

<!-- Generated from src/api by \`make generate\`. Do not edit. -->

Both kinds belong to \`${API_VERSION}\`. \`kubectl explain mps.spec\` shows the same on a cluster.

A default is what counts while the field is absent. It is never written into the object, so GitOps tools see no drift. \`kubectl apply\` refuses a
field that the schema does not know; other clients drop it with a warning.

${kindSection(
  marketplacesources,
  SOURCE_CONDITIONS.map((type) => [type, SOURCE_TEXTS[type]]),
)}
${kindSection(
  skills,
  SKILL_CONDITIONS.map((type) => [type, SKILL_TEXTS[type]]),
)}
## Annotations

${table(
  ['annotation', 'on', 'meaning'],
  keysOf(ANNOTATIONS).map((key) => [code(ANNOTATIONS[key]), ...ANNOTATION_TEXTS[key]]),
)}

## Labels of generated Skills

${table(
  ['label', 'value'],
  keysOf(LABELS).map((key) => [code(LABELS[key]), LABEL_TEXTS[key]]),
)}

## Field managers

Every write is a server-side apply, and each field has one writer. What a person applies, and any \`spec.suspend\`, belongs to the person.

${table(
  ['field manager', 'writes'],
  keysOf(FIELD_MANAGERS).map((key) => [code(FIELD_MANAGERS[key]), MANAGER_TEXTS[key]]),
)}

The finalizer ${code(FINALIZER)} is on a Skill while it holds a build Job, an image or a template outside of the cluster.
`;
}

import { z } from 'zod';
import { GROUP, VERSION } from './labels.ts';
import { marketplaceSourceSchema } from './marketplacesource.ts';
import { MARKETPLACE_SOURCES, SKILLS } from './resources.ts';
import { skillSchema } from './skill.ts';

/** A node of an OpenAPI v3 schema. */
export type SchemaNode = { [key: string]: unknown };

interface PrintColumn {
  name: string;
  type: 'string' | 'integer' | 'date';
  jsonPath: string;
  description?: string;
}

interface Description {
  resource: { plural: string; kind: string };
  shortName: string;
  description: string;
  schema: z.ZodType;
  columns: PrintColumn[];
  rules?: { rule: string; message: string }[];
}

const AGE: PrintColumn = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' };
const READY: PrintColumn = {
  name: 'Ready',
  type: 'string',
  jsonPath: '.status.conditions[?(@.type=="Ready")].status',
};
const STATUS: PrintColumn = {
  name: 'Status',
  type: 'string',
  jsonPath: '.status.conditions[?(@.type=="Ready")].message',
};

const DESCRIPTIONS: Description[] = [
  {
    resource: MARKETPLACE_SOURCES,
    shortName: 'mps',
    description: 'A place that skills come from. Every skill directory in it becomes a Skill.',
    schema: marketplaceSourceSchema,
    columns: [
      { name: 'Type', type: 'string', jsonPath: '.spec.type' },
      { name: 'Revision', type: 'string', jsonPath: '.status.revision' },
      { name: 'Skills', type: 'integer', jsonPath: '.status.skills.total' },
      READY,
      STATUS,
      AGE,
    ],
    rules: [
      {
        rule: "size(self.metadata.name) <= 63 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
        message:
          'metadata.name must be a DNS label: at most 63 lower-case letters, digits and "-", such as team-skills (it becomes the first part of the name of every Skill)',
      },
    ],
  },
  {
    resource: SKILLS,
    shortName: 'skl',
    description: 'One skill: a directory with a SKILL.md, validated, stored and served.',
    schema: skillSchema,
    columns: [
      { name: 'Plugin', type: 'string', jsonPath: '.spec.plugin' },
      { name: 'Runtime', type: 'string', jsonPath: '.status.runtime' },
      { name: 'Version', type: 'string', jsonPath: '.status.served.version' },
      { name: 'Template', type: 'string', jsonPath: '.status.served.templateID' },
      READY,
      STATUS,
      AGE,
    ],
  },
];

/** Removes what zod writes and a structural schema must not hold. */
function structural(node: SchemaNode): void {
  if (node.type === 'object' && node.properties) delete node.additionalProperties;
  delete node.propertyNames;
  // Bounds of a safe integer say nothing here.
  if (node.maximum === Number.MAX_SAFE_INTEGER) delete node.maximum;
  if (node.minimum === Number.MIN_SAFE_INTEGER) delete node.minimum;
}

/** Visits every schema node below (and with) `node`. */
export function walk(node: SchemaNode, visit: (node: SchemaNode, path: string) => void, path = ''): void {
  visit(node, path);
  const properties = node.properties as Record<string, SchemaNode> | undefined;
  for (const [name, child] of Object.entries(properties ?? {})) walk(child, visit, path ? `${path}.${name}` : name);
  if (node.items) walk(node.items as SchemaNode, visit, `${path}[]`);
  if (typeof node.additionalProperties === 'object') walk(node.additionalProperties as SchemaNode, visit, `${path}{}`);
}

/** The structural schema of spec and status of one kind. */
function openAPI(schema: z.ZodType): { spec: SchemaNode; status: SchemaNode } {
  const json = z.toJSONSchema(schema, {
    target: 'openapi-3.0',
    io: 'input',
    reused: 'inline',
    cycles: 'throw',
    unrepresentable: 'throw',
    override: (context) => structural(context.jsonSchema as SchemaNode),
  });
  const { spec, status } = (json as unknown as { properties: { spec: SchemaNode; status: SchemaNode } }).properties;
  // spec.type is told by CEL, in words of its own; a closed list in a status would break a rollback.
  delete (spec.properties as Record<string, SchemaNode>).type?.enum;
  walk(status, (node) => {
    delete node.enum;
  });
  // A default inside an absent parent is not applied, so the parent has one too.
  return { spec, status: { ...status, default: { observedGeneration: -1 } } };
}

function crdOf({ resource, shortName, description, schema, columns, rules }: Description): SchemaNode {
  const { spec, status } = openAPI(schema);
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: {
      name: `${resource.plural}.${GROUP}`,
      labels: { 'app.kubernetes.io/name': 'skill-operator' },
    },
    spec: {
      group: GROUP,
      scope: 'Namespaced',
      names: {
        plural: resource.plural,
        singular: resource.kind.toLowerCase(),
        kind: resource.kind,
        listKind: `${resource.kind}List`,
        shortNames: [shortName],
        categories: ['skills'],
      },
      versions: [
        {
          name: VERSION,
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: columns,
          schema: {
            openAPIV3Schema: {
              description,
              type: 'object',
              required: ['spec'],
              properties: {
                apiVersion: { type: 'string' },
                kind: { type: 'string' },
                metadata: { type: 'object' },
                spec,
                status,
              },
              ...(rules ? { 'x-kubernetes-validations': rules } : {}),
            },
          },
        },
      ],
    },
  };
}

/** The two CustomResourceDefinitions, by plural name; scripts/generate.ts writes them to crds/. */
export const customResourceDefinitions = (): Record<string, SchemaNode> =>
  Object.fromEntries(DESCRIPTIONS.map((description) => [description.resource.plural, crdOf(description)]));

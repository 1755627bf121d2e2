import { type SchemaNode, walk } from '../../../src/api/crd.ts';

/** One field of a schema. */
export interface FieldRow {
  path: string;
  type: string;
  required: boolean;
  text: string;
}

/** Objects with fewer fields than this are always shown in full. */
const WORTH_A_REFERENCE = 5;

const childrenOf = (node: SchemaNode): Record<string, SchemaNode> =>
  (node.properties as Record<string, SchemaNode> | undefined) ?? {};

/** A type in the words of a reader, with its bounds. */
function typeOf(node: SchemaNode): string {
  if (node.type === 'array') {
    const most = node.maxItems === undefined ? '' : ` (≤ ${node.maxItems})`;
    return `list of ${typeOf(node.items as SchemaNode)}s${most}`;
  }
  if (typeof node.additionalProperties === 'object') return 'map of strings';
  if (Array.isArray(node.enum)) return node.enum.map((value) => `\`${value}\``).join(' or ');
  if (node.format === 'date-time') return 'time';
  const { minimum, maximum } = node;
  if (minimum !== undefined && maximum !== undefined) return `${node.type} ${minimum}–${maximum}`;
  return String(node.type);
}

/** The object of a field that has fields of its own: the node itself, or the items of a list. */
function objectOf(node: SchemaNode, path: string): { object: SchemaNode; path: string } | undefined {
  if (node.type === 'array') return objectOf(node.items as SchemaNode, `${path}[]`);
  return node.properties ? { object: node, path } : undefined;
}

/** Fields that an earlier object of the page has too, letter by letter; undefined when the earlier one has a field that this one lacks. */
function beyond(object: SchemaNode, earlier: SchemaNode): string[] | undefined {
  const own = childrenOf(object);
  const known = Object.entries(childrenOf(earlier));
  if (known.length < WORTH_A_REFERENCE) return undefined;
  if (!known.every(([name, node]) => JSON.stringify(own[name]) === JSON.stringify(node))) return undefined;
  const names = new Set(known.map(([name]) => name));
  return Object.keys(own).filter((name) => !names.has(name));
}

/** What an object has in common with one that was shown, and the names of the fields that are still to be shown. */
function reference(object: SchemaNode, shown: readonly { path: string; object: SchemaNode }[]) {
  for (const earlier of shown) {
    const rest = beyond(object, earlier.object);
    if (rest === undefined) continue;
    return {
      rest,
      text: rest.length === 0 ? ` Fields as in ${earlier.path}.` : ` The fields of ${earlier.path}, and:`,
    };
  }
  return undefined;
}

/** Every field below `root`, depth first; an object whose fields were shown before refers to them. */
export function fieldRows(root: SchemaNode, prefix: string): FieldRow[] {
  const shown: { path: string; object: SchemaNode }[] = [];
  const rowsOf = (node: SchemaNode, path: string, required: boolean): FieldRow[] => {
    const row = { path, type: typeOf(node), required, text: String(node.description ?? '') };
    const inner = objectOf(node, path);
    if (!inner) return [row];
    const same = reference(inner.object, shown);
    if (same) return [{ ...row, text: row.text + same.text }, ...below(inner.object, inner.path, same.rest)];
    shown.push({ path, object: inner.object });
    return [row, ...below(inner.object, inner.path, Object.keys(childrenOf(inner.object)))];
  };
  const below = (object: SchemaNode, path: string, names: readonly string[]): FieldRow[] => {
    const required = new Set(object.required as string[] | undefined);
    const children = childrenOf(object);
    return names.flatMap((name) => rowsOf(children[name] as SchemaNode, `${path}.${name}`, required.has(name)));
  };
  return below(root, prefix, Object.keys(childrenOf(root)));
}

/** The messages of all CEL rules with the fields that they hold for, in the order of the schema. */
export function ruleRows(schema: SchemaNode): { paths: string[]; message: string }[] {
  const byMessage = new Map<string, string[]>();
  walk(schema, (node, path) => {
    for (const { message } of (node['x-kubernetes-validations'] as { message: string }[] | undefined) ?? []) {
      const paths = byMessage.get(message) ?? [];
      paths.push(path === '' ? 'metadata.name' : path);
      byMessage.set(message, paths);
    }
  });
  return [...byMessage].map(([message, paths]) => ({ message, paths }));
}

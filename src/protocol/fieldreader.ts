import { isMap, isNode, isScalar, isSeq, type Node, type Scalar } from 'yaml';
import type { Findings, Position } from './findings.ts';
import { count, nearest, quoted, show } from './text.ts';
import type { FindingCode } from './violations.ts';
import type { ParsedYaml } from './yaml.ts';

const FIELDS = ['name', 'description', 'license', 'compatibility', 'metadata', 'allowed-tools', 'runtime'] as const;
/** A field of the protocol. */
export type FieldName = (typeof FIELDS)[number];
const MAX_UNKNOWN = 20;

interface Field {
  /** The value; null where the key has none. */
  node: Node | null;
  /** Of the value, or of the key where there is no value. */
  at: Position;
  /** Of the key. */
  keyAt: Position;
}

/** Access to the fields by name; remembers whether one of them broke a rule. */
export class FieldReader {
  broken = false;
  readonly #fields = new Map<string, Field>();
  readonly #out: Findings;

  constructor(yaml: ParsedYaml, out: Findings) {
    this.#out = out;
    for (const { key, value } of yaml.map.items) if (isScalar(key)) this.#take(key, value, yaml);
  }

  #take(key: Scalar, value: unknown, yaml: ParsedYaml): void {
    const name = String(key.value);
    const node = isNode(value) && !(isScalar(value) && value.value === null) ? value : null;
    const keyAt = yaml.at(key.range?.[0] ?? 0);
    this.#fields.set(name, { node, at: node?.range ? yaml.at(node.range[0]) : keyAt, keyAt });
    if (isScalar(node)) this.#checkPlain(name, node, yaml);
  }

  get(name: FieldName): Field | undefined {
    return this.#fields.get(name);
  }

  fail(code: FindingCode, at: Position, message: string, hint: string): void {
    this.broken = true;
    this.#out.add(code, at, message, hint);
  }

  /** The field when it has a value; null notes the warning and counts as absent. */
  optional(name: FieldName): (Field & { node: Node }) | undefined {
    const field = this.#fields.get(name);
    if (!field) return undefined;
    const { node, keyAt } = field;
    if (node) return { ...field, node };
    this.#out.add(
      'FieldNull',
      keyAt,
      `the field ${name} has no value and counts as absent`,
      'give it a value, or delete the line',
    );
    return undefined;
  }

  /** The text of an optional string field, or undefined when it is absent or broken. */
  string(name: FieldName): string | undefined {
    const field = this.optional(name);
    return field && this.text(name, field);
  }

  /** The text of a field that must be a string. */
  text(name: FieldName, { node, at }: { node: Node; at: Position }): string | undefined {
    if (isScalar(node) && typeof node.value === 'string') return node.value;
    const scalar = isScalar(node);
    const what = scalar ? `${show(node.source ?? '')} is a ${typeof node.value}` : `it is a ${kindOf(node)}`;
    const hint = scalar ? `quote the value: ${name}: ${quoted(node.source ?? '')}` : `write one string: ${name}: "…"`;
    this.fail('FieldNotString', at, `the field ${name} must be a string, but ${what}`, hint);
    return undefined;
  }

  noteUnknown(): void {
    const unknown = [...this.#fields].filter(([key]) => !(FIELDS as readonly string[]).includes(key));
    for (const [key, { keyAt }] of unknown.slice(0, MAX_UNKNOWN)) {
      const near = nearest(key, FIELDS);
      const hint = near ? `did you mean ${near}?` : 'move it below metadata, or leave it: it has no effect here';
      this.#out.add('FieldUnknown', keyAt, `the field "${show(key)}" is unknown and ignored`, hint);
    }
    const rest = unknown[MAX_UNKNOWN];
    if (!rest) return;
    const message = `${count(unknown.length - MAX_UNKNOWN)} more unknown fields are ignored`;
    this.#out.add('FieldUnknown', rest[1].keyAt, message, 'move them below metadata');
  }

  /** Warnings about unquoted values that do not mean what they look like. */
  #checkPlain(name: string, node: Scalar, yaml: ParsedYaml): void {
    if (node.type !== 'PLAIN' || !node.range || !(FIELDS as readonly string[]).includes(name)) return;
    const [start, end] = node.range;
    const value = String(node.source);
    if (/^[ \t]+#/.test(yaml.source.slice(end, end + 256))) {
      const hint = `if the rest belongs to it, quote the value: ${name}: ${quoted(restOfLine(yaml.source, start), 60)}`;
      this.#out.add(
        'ValueCutByComment',
        yaml.at(end),
        `the value of ${name} ends before " #", where a comment starts`,
        hint,
      );
    }
    if (typeof node.value === 'string' && YAML_1_1.test(value)) {
      const message = `the value ${show(value)} of ${name} is a boolean, number or date for YAML 1.1 readers`;
      this.#out.add('ValueAmbiguous', yaml.at(start), message, `quote the value: ${name}: ${quoted(value)}`);
    }
  }
}

/** Booleans, sexagesimals, underscored numbers and timestamps of YAML 1.1 that are strings in 1.2. */
const YAML_1_1 =
  /^(?:y|n|yes|no|on|off|[-+]?\d+(?::[0-5]?\d)+(?:\.\d*)?|[-+]?\d[\d_]*_[\d_]*|\d{4}-\d\d?-\d\d?(?:[Tt \t].*)?)$/i;

const restOfLine = (source: string, start: number): string => {
  const newline = source.indexOf('\n', start);
  return source.slice(start, newline < 0 ? source.length : newline);
};

/** What a wrong value is, for messages. */
export const kindOf = (node: Node): string =>
  isMap(node) ? 'mapping' : isSeq(node) ? 'list' : 'value of another type';

import { isMap, isScalar, isSeq } from 'yaml';
import { type FieldName, FieldReader, kindOf } from './fieldreader.ts';
import type { Findings, Position } from './findings.ts';
import { hasSkillNameCharacters, isSkillName, LIMITS } from './names.ts';
import { isRuntime, runtimeHint, runtimeMessage } from './runtime.ts';
import { codePointLength, count, plural, show } from './text.ts';
import { type Frontmatter, RUNTIMES, type Runtime } from './types.ts';
import type { FindingCode } from './violations.ts';
import type { ParsedYaml } from './yaml.ts';

/** What the fields gave: `frontmatter` only when every field is valid, `runtime` whenever it is. */
export interface FieldsResult {
  frontmatter?: Frontmatter;
  runtime?: Runtime;
  /** Where the runtime stands, or undefined where the default applies. */
  runtimeAt?: Position;
}

/** Checks every field of the frontmatter (§3, decisions: package and frontmatter) against the rules and the directory's name. */
export function readFields(yaml: ParsedYaml, directory: string, out: Findings): FieldsResult {
  const fields = new FieldReader(yaml, out);
  const name = readName(fields, directory, out);
  const description = readDescription(fields);
  const license = fields.string('license');
  const compatibility = readCompatibility(fields);
  const metadata = readMetadata(fields, yaml.source);
  const allowedTools = readAllowedTools(fields);
  const runtime = readRuntime(fields);
  fields.noteUnknown();
  const runtimeAt = fields.get('runtime')?.at;
  const result: FieldsResult = { ...(runtime ? { runtime } : {}), ...(runtimeAt ? { runtimeAt } : {}) };
  if (fields.broken || name === undefined || description === undefined || !runtime) return result;
  const frontmatter: Frontmatter = {
    name,
    description,
    ...(license === undefined ? {} : { license }),
    ...(compatibility === undefined ? {} : { compatibility }),
    ...(metadata === undefined ? {} : { metadata }),
    ...(allowedTools === undefined ? {} : { allowedTools }),
    runtime,
    source: yaml.source,
  };
  return { ...result, frontmatter };
}

function readName(fields: FieldReader, directory: string, out: Findings): string | undefined {
  const field = fields.get('name');
  const own = show(directory);
  if (!field?.node) {
    const at = field?.at ?? { path: 'SKILL.md', line: 1 };
    fields.fail('NameMissing', at, 'the field name is missing or empty', `add this line: name: ${own}`);
    return undefined;
  }
  const { node, at } = field;
  const name = fields.text('name', { node, at });
  if (name === undefined) return undefined;
  const length = codePointLength(name);
  if (length > LIMITS.nameLength) {
    const message = `the name has ${count(length)} characters, the limit is ${LIMITS.nameLength}`;
    fields.fail('NameTooLong', at, message, 'shorten the name and the directory');
  }
  if (!hasSkillNameCharacters(name)) {
    const message = `the name "${show(name)}" may only have a-z, 0-9 and single hyphens between them`;
    fields.fail('NameInvalid', at, message, nameHint(name, directory));
  }
  if (name !== directory) {
    // Not a fault of the frontmatter alone: the same text is right in another directory.
    const message = `the name "${show(name)}" is not the name of the directory, "${own}"`;
    const rename = `rename the directory to ${show(name)}`;
    const write = `write name: ${own}`;
    const hint = isSkillName(directory) ? (isSkillName(name) ? `${write}, or ${rename}` : write) : rename;
    out.add(
      'NameMismatchesDirectory',
      at,
      message,
      isSkillName(directory) || isSkillName(name) ? hint : nameHint(name, ''),
    );
  }
  return name;
}

function nameHint(name: string, directory: string): string {
  if (isSkillName(directory)) return `write name: ${directory}`;
  const slug = name
    .slice(0, 200)
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, LIMITS.nameLength)
    .replaceAll(/^-|-$/g, '');
  return isSkillName(slug) ? `write name: ${slug}, and rename the directory to it` : 'choose a name such as pdf-tools';
}

function readDescription(fields: FieldReader): string | undefined {
  const field = fields.get('description');
  if (!field?.node) {
    const at = field?.at ?? { path: 'SKILL.md', line: 1 };
    const hint = 'add a line such as description: Fills PDF forms. Use it when the user has a form to fill.';
    fields.fail('DescriptionMissing', at, 'the field description is missing or empty', hint);
    return undefined;
  }
  const { node, at } = field;
  const description = fields.text('description', { node, at });
  if (description === undefined) return undefined;
  if (description.trim() === '') {
    fields.fail('DescriptionBlank', at, 'the description is blank', 'say what the skill does and when to use it');
  }
  checkLength('description', description, LIMITS.descriptionLength, 'DescriptionTooLong', at, fields);
  return description;
}

function readCompatibility(fields: FieldReader): string | undefined {
  const field = fields.optional('compatibility');
  if (!field) return undefined;
  const text = fields.text('compatibility', field);
  if (text !== undefined) {
    checkLength('compatibility', text, LIMITS.compatibilityLength, 'CompatibilityTooLong', field.at, fields);
  }
  return text;
}

function checkLength(
  name: FieldName,
  text: string,
  limit: number,
  code: FindingCode,
  at: Position,
  fields: FieldReader,
): void {
  const length = codePointLength(text);
  if (length <= limit) return;
  const message = `the field ${name} has ${count(length)} characters, the limit is ${count(limit)}`;
  fields.fail(code, at, message, `shorten it by ${plural(length - limit, 'character')}; details belong into the body`);
}

/** The mapping's source text: from the start of its first line, so that block indentation stays whole. */
function readMetadata(fields: FieldReader, source: string): string | undefined {
  const field = fields.optional('metadata');
  if (!field) return undefined;
  const { node, at } = field;
  if (isMap(node) && node.range) {
    const [start, end] = node.range;
    const lineStart = source.lastIndexOf('\n', start - 1) + 1;
    const isOwnLine = source.slice(lineStart, start).trim() === '';
    return source.slice(isOwnLine ? lineStart : start, end);
  }
  const what = isScalar(node) ? `a ${typeof node.value}` : `a ${kindOf(node)}`;
  const hint = 'write key: value lines below it, indented by two blanks';
  fields.fail('MetadataNotMapping', at, `the field metadata must be a mapping, but it is ${what}`, hint);
  return undefined;
}

function readAllowedTools(fields: FieldReader): string | string[] | undefined {
  const field = fields.optional('allowed-tools');
  if (!field) return undefined;
  const { node, at } = field;
  if (isScalar(node) && typeof node.value === 'string') return node.value;
  const items = isSeq(node) ? node.items.map((item) => (isScalar(item) ? item.value : undefined)) : [undefined];
  if (items.every((item) => typeof item === 'string')) return items;
  const message = 'the field allowed-tools must be a string or a list of strings';
  fields.fail(
    'AllowedToolsInvalid',
    at,
    message,
    'write allowed-tools: "Read, Grep", or a list with one quoted string per line',
  );
  return undefined;
}

function readRuntime(fields: FieldReader): Runtime | undefined {
  const field = fields.optional('runtime');
  if (!field) return 'prompt-only';
  const { node, at } = field;
  const value = isScalar(node) ? (typeof node.value === 'string' ? node.value : String(node.source)) : undefined;
  if (value !== undefined && isRuntime(value) && isScalar(node) && typeof node.value === 'string') return value;
  const message =
    value === undefined
      ? `the field runtime must be one of ${RUNTIMES.join(', ')}, but it is a ${kindOf(node)}`
      : runtimeMessage(value);
  fields.fail('RuntimeUnknown', at, message, value === undefined ? 'write one value, not a list' : runtimeHint(value));
  return undefined;
}

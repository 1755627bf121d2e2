import {
  isAlias,
  isCollection,
  isMap,
  isNode,
  isPair,
  isScalar,
  LineCounter,
  type Node,
  parseDocument,
  type YAMLMap,
} from 'yaml';
import type { Findings } from './findings.ts';
import { SKILL_MD } from './names.ts';
import { quoted, show } from './text.ts';
import type { FindingCode } from './violations.ts';

/** A parsed frontmatter: its mapping and where offsets of `source` lie in SKILL.md. */
export interface ParsedYaml {
  map: YAMLMap;
  source: string;
  /** Position in SKILL.md of an offset into `source`. */
  at(offset: number): { path: string; line: number; column: number };
}

const OPTIONS = {
  version: '1.2',
  schema: 'core',
  strict: true,
  stringKeys: true,
  merge: false,
  prettyErrors: false,
  // The parser's own check is quadratic; checkKeys below is linear.
  uniqueKeys: false,
} as const;

/** The parser's stack holds far more; a fixed number makes the verdict the same in every thread. */
const MAX_DEPTH = 64;
const CORE_TAGS = new Set(['str', 'int', 'float', 'bool', 'null', 'map', 'seq'].map((t) => `tag:yaml.org,2002:${t}`));

/**
 * Parses frontmatter as one YAML 1.2 core document with a mapping at its top; never repairs, and takes warnings for errors.
 * `source` has LF line ends and at most 64 KiB; `firstLine` is its line in SKILL.md. Undefined: broken, with findings.
 */
export function parseFrontmatter(source: string, firstLine: number, out: Findings): ParsedYaml | undefined {
  const lineCounter = new LineCounter();
  const document = parseDocument(source, { ...OPTIONS, lineCounter });
  const at = (offset: number) => {
    const { line, col } = lineCounter.linePos(Math.min(offset, source.length));
    return { path: SKILL_MD, line: Math.max(line, 1) + firstLine - 1, column: Math.max(col, 1) };
  };
  const context: Context = { source, at, out, broken: false, noted: new Set() };
  const problems = [...document.errors, ...document.warnings];
  if (isTooDeep(document.contents, 0) || problems.some(({ code }) => code === 'RESOURCE_EXHAUSTION')) {
    const message = `the frontmatter nests deeper than ${MAX_DEPTH} levels`;
    out.add('YamlTooDeep', { path: SKILL_MD, line: firstLine }, message, 'flatten the value');
    return undefined;
  }
  checkSingleDocument(document.directives?.docStart === true, context);
  noteProblems(problems, document.contents, context);
  if (document.contents) checkNode(document.contents, context);
  if (context.broken) return undefined;
  return asMapping(document.contents, context);
}

interface Context {
  source: string;
  at: ParsedYaml['at'];
  out: Findings;
  broken: boolean;
  /** `code:line` of what is noted at most once per line: the rest of a line is its consequence, and may be long. */
  noted: Set<string>;
}

/** True the first time in this line. */
function isFirst(context: Context, code: string, offset: number): boolean {
  const key = `${code}:${context.at(offset).line}`;
  return !context.noted.has(key) && context.noted.add(key) !== undefined;
}

function note(context: Context, code: FindingCode, offset: number, message: string, hint: string): void {
  context.broken = true;
  context.out.add(code, context.at(offset), message, hint);
}

function isTooDeep(node: unknown, depth: number): boolean {
  if (isPair(node)) return isTooDeep(node.key, depth) || isTooDeep(node.value, depth);
  if (!isCollection(node)) return false;
  return depth >= MAX_DEPTH || node.items.some((item) => isTooDeep(item, depth + 1));
}

/** `...` ends a document though nothing follows; a directive or `--- text` starts one with rules of its own. */
function checkSingleDocument(hasStart: boolean, context: Context): void {
  const end = /^\.\.\.(?:[ \t]|$)/m.exec(context.source);
  const offset = end ? end.index : hasStart ? 0 : undefined;
  if (offset === undefined) return;
  const message = 'the frontmatter holds a YAML document marker or directive';
  note(context, 'YamlMultipleDocuments', offset, message, 'delete the line that starts with ..., % or --- and text');
}

const CODES: Readonly<Record<string, FindingCode>> = {
  BLOCK_AS_IMPLICIT_KEY: 'YamlColonUnquoted',
  TAB_AS_INDENT: 'YamlTabIndent',
  NON_STRING_KEY: 'YamlKeyInvalid',
  TAG_RESOLVE_FAILED: 'YamlTagUnknown',
  MULTIPLE_DOCS: 'YamlMultipleDocuments',
};

/** Where the value starts that an unclosed quote or bracket belongs to; the parser reports where the text ends. */
function lastValueBefore(contents: unknown, offset: number): number {
  if (!isMap(contents)) return offset;
  const starts = contents.items.map(({ value }) => (isNode(value) ? offsetOf(value) : 0));
  return starts.filter((start) => start > 0 && start <= offset).at(-1) ?? offset;
}

/** Notes the parser's first problem of each line. */
function noteProblems(
  problems: { code: string; message: string; pos: [number, number] }[],
  contents: unknown,
  context: Context,
): void {
  for (const { code, message, pos } of problems.toSorted((a, b) => a.pos[0] - b.pos[0])) {
    if (code === 'MULTIPLE_DOCS' && context.out.has('YamlMultipleDocuments')) continue;
    const isOpen = message.startsWith('Missing closing');
    const offset = isOpen ? lastValueBefore(contents, pos[0]) : pos[0];
    if (!isFirst(context, 'problem', offset)) continue;
    const known = CODES[code] ?? 'YamlSyntaxInvalid';
    const text =
      MESSAGES[known] ?? `the frontmatter is not valid YAML: ${show(isOpen ? 'a quote is not closed' : message)}`;
    const hint = isOpen ? 'close the quote that the value opens' : quoteHint(context.source, offset);
    note(context, known, offset, text, HINTS[known] ?? hint);
  }
}

const MESSAGES: Partial<Record<FindingCode, string>> = {
  YamlColonUnquoted: 'the value contains a colon that YAML reads as another key',
  YamlTabIndent: 'the line is indented with a tab',
  YamlKeyInvalid: 'the key is not a plain string',
  YamlTagUnknown: 'the value starts with a YAML tag that is not of the core schema',
  YamlMultipleDocuments: 'the frontmatter holds more than one YAML document',
};
const HINTS: Partial<Record<FindingCode, string>> = {
  YamlTabIndent: 'indent with spaces',
  YamlKeyInvalid: 'use a string as the key',
  YamlMultipleDocuments: 'delete the line that starts with ..., % or --- and text',
};

/** `quote the value: description: "Use when: x"`, made from the line at `offset` when it is `key: value`. */
function quoteHint(source: string, offset: number): string {
  const start = source.lastIndexOf('\n', offset - 1) + 1;
  const newline = source.indexOf('\n', offset);
  const line = source.slice(start, newline < 0 ? source.length : newline);
  const colon = line.indexOf(':');
  const value = line.slice(colon + 1).trim();
  if (colon < 1 || value === '' || /^[|>]/.test(value))
    return 'correct the line, and quote values with special characters';
  return `quote the value: ${show(line.slice(0, colon).trim(), 40)}: ${quoted(value)}`;
}

/** Walks the whole document, whose depth is bounded, for what the parser accepts and the protocol does not. */
function checkNode(node: unknown, context: Context): void {
  if (isPair(node)) {
    checkNode(node.key, context);
    checkNode(node.value, context);
    return;
  }
  if (isAlias(node)) noteAlias(node, context);
  if (!isScalar(node) && !isCollection(node)) return;
  if (node.anchor !== undefined) noteAlias(node, context);
  checkTag(node, context);
  if (isMap(node)) checkKeys(node, context);
  if (isCollection(node)) for (const item of node.items) checkNode(item, context);
}

const offsetOf = (node: Node): number => node.range?.[0] ?? 0;

function noteAlias(node: Node, context: Context): void {
  const offset = offsetOf(node);
  if (!isFirst(context, 'alias', offset)) return;
  const message = 'the frontmatter uses a YAML anchor or alias (& or *), which is not allowed';
  note(context, 'YamlAliasForbidden', offset, message, quoteHint(context.source, offset));
}

function checkTag(node: Node & { tag?: string | undefined }, context: Context): void {
  // The parser sets `tag` on collections by itself; only core ones, which pass.
  if (node.tag === undefined || CORE_TAGS.has(node.tag)) return;
  const offset = offsetOf(node);
  if (context.out.has('YamlTagUnknown') || !isFirst(context, 'tag', offset)) return;
  note(context, 'YamlTagUnknown', offset, MESSAGES.YamlTagUnknown ?? '', quoteHint(context.source, offset));
}

function checkKeys(map: YAMLMap, context: Context): void {
  const seen = new Map<unknown, number>();
  for (const { key } of map.items) {
    if (!isScalar(key)) continue;
    const offset = offsetOf(key);
    const first = seen.get(key.value);
    if (first === undefined) seen.set(key.value, offset);
    else {
      const message = `the key "${show(String(key.value))}" stands already in line ${context.at(first).line}`;
      note(context, 'YamlKeyDuplicate', offset, message, 'keep one of the two');
    }
  }
}

function asMapping(contents: unknown, context: Context): ParsedYaml | undefined {
  const { source, at, out } = context;
  if (isMap(contents) && contents.items.length > 0) return { map: contents, source, at };
  const isEmpty = !contents || isMap(contents) || (isScalar(contents) && contents.value === null);
  if (isEmpty) out.add('FrontmatterEmpty', at(0), 'the frontmatter has no fields', 'add name and description');
  else {
    const message = 'the frontmatter is not a mapping of fields';
    out.add(
      'FrontmatterNotMapping',
      at(0),
      message,
      'write one field per line, with a blank after the colon: name: pdf',
    );
  }
  return undefined;
}

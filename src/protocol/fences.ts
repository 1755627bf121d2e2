/**
 * Which lines of a Markdown body stand in fenced code blocks (CommonMark 0.31 §4.5), also inside block quotes and list items.
 * Line based and linear; HTML blocks and lazy paragraph lines are not modelled, since no fence opens or closes by them in practice.
 */

type Container = { kind: 'quote' } | { kind: 'item'; indent: number };
interface Fence {
  character: string;
  length: number;
  /** Number of containers around the fence: it ends when one of them ends. */
  depth: number;
}
/** A line with tabs expanded, and how far it is consumed. */
interface Cursor {
  text: string;
  at: number;
}

/** Deeper containers are not opened: nobody writes them, and each costs time on every line. */
const MAX_DEPTH = 32;
const BULLET_OR_NUMBER = /(?:[-+*]|\d{1,9}[.)])(?= |$)/y;
const THEMATIC_BREAK = /(?:(?:- *){3,}|(?:\* *){3,}|(?:_ *){3,})$/y;
const FENCE = /(`{3,}|~{3,})(.*)$/y;

/** One boolean per line: true when the line, fences included, is literal. */
export function fencedLines(lines: readonly string[]): boolean[] {
  const containers: Container[] = [];
  let fence: Fence | undefined;
  return lines.map((line) => {
    const cursor = { text: expandTabs(line), at: 0 };
    const matched = matchContainers(cursor, containers);
    if (fence && matched >= fence.depth) {
      if (closes(cursor, fence)) fence = undefined;
      return true;
    }
    containers.length = matched;
    openContainers(cursor, containers);
    fence = opens(cursor, containers.length);
    return fence !== undefined;
  });
}

function expandTabs(line: string): string {
  const text = line.endsWith('\r') ? line.slice(0, -1) : line;
  if (!text.includes('\t')) return text;
  let out = '';
  for (const piece of text.split(/(\t)/)) out += piece === '\t' ? ' '.repeat(4 - (out.length % 4)) : piece;
  return out;
}

const indentAt = ({ text, at }: Cursor): number => {
  let end = at;
  while (text[end] === ' ') end++;
  return end - at;
};

const isBlank = (cursor: Cursor): boolean => cursor.at + indentAt(cursor) === cursor.text.length;

/** Consumes the prefixes of the open containers; returns how many of them go on in this line. */
function matchContainers(cursor: Cursor, containers: readonly Container[]): number {
  let matched = 0;
  for (const container of containers) {
    if (container.kind === 'quote') {
      if (!takeQuoteMarker(cursor)) break;
    } else if (indentAt(cursor) >= container.indent) cursor.at += container.indent;
    else if (!isBlank(cursor)) break;
    matched++;
  }
  return matched;
}

function takeQuoteMarker(cursor: Cursor): boolean {
  const indent = indentAt(cursor);
  if (indent > 3 || cursor.text[cursor.at + indent] !== '>') return false;
  cursor.at += indent + 1;
  if (cursor.text[cursor.at] === ' ') cursor.at++;
  return true;
}

function openContainers(cursor: Cursor, containers: Container[]): void {
  while (containers.length < MAX_DEPTH) {
    if (takeQuoteMarker(cursor)) containers.push({ kind: 'quote' });
    else {
      const item = takeListMarker(cursor);
      if (!item) return;
      containers.push(item);
    }
  }
}

function takeListMarker(cursor: Cursor): Container | undefined {
  const indent = indentAt(cursor);
  const start = cursor.at + indent;
  if (indent > 3 || matchAt(THEMATIC_BREAK, cursor.text, start)) return undefined;
  const marker = matchAt(BULLET_OR_NUMBER, cursor.text, start)?.[0];
  if (marker === undefined) return undefined;
  cursor.at = start + marker.length;
  const blanks = indentAt(cursor);
  // Five blanks or more begin indented code after one of them; an empty first line counts as one blank.
  const content = isBlank(cursor) || blanks > 4 ? 1 : blanks;
  cursor.at = Math.min(cursor.at + content, cursor.text.length);
  return { kind: 'item', indent: indent + marker.length + content };
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

function opens(cursor: Cursor, depth: number): Fence | undefined {
  const indent = indentAt(cursor);
  if (indent > 3) return undefined;
  const match = matchAt(FENCE, cursor.text, cursor.at + indent);
  const [, run = '', info = ''] = match ?? [];
  const character = run[0];
  // A backtick in the info string makes it inline code.
  if (character === undefined || (character === '`' && info.includes('`'))) return undefined;
  return { character, length: run.length, depth };
}

function closes(cursor: Cursor, fence: Fence): boolean {
  const indent = indentAt(cursor);
  const rest = cursor.text.slice(cursor.at + indent).trimEnd();
  return indent <= 3 && rest.length >= fence.length && rest === fence.character.repeat(rest.length);
}

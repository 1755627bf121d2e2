import { show } from './text.ts';

/** One instruction as it stands, continuation lines joined, without comments and without the bodies of its heredocs. */
export interface LogicalLine {
  text: string;
  /** Where it starts, 1-based. */
  line: number;
}

/** What makes a Dockerfile unreadable for a builder. */
export interface DockerfileProblem {
  line: number;
  message: string;
  hint: string;
}

interface Cursor {
  lines: readonly string[];
  next: number;
}

/** The instructions that may carry heredocs. */
const WITH_HEREDOC = /^\s*(?:ONBUILD\s+)?(?:RUN|COPY|ADD)\s/i;
const DIRECTIVE = /^#[ \t]*([a-z][a-z0-9]*)[ \t]*=[ \t]*(.*?)[ \t]*$/i;
const DIRECTIVES = new Set(['syntax', 'escape', 'check']);

const isComment = (line: string): boolean => /^\s*#/.test(line);

/**
 * Splits a Dockerfile into instructions: parser directives, comments, continuation with the file's escape character, heredocs.
 * Linear in the length of the text. Source: the Dockerfile reference, "Format", "Parser directives", "Here-Documents".
 */
export function logicalLines(text: string, problems: DockerfileProblem[]): LogicalLine[] {
  const cursor: Cursor = { lines: text.split(/\r?\n/), next: 0 };
  const mark = readDirectives(cursor, problems);
  const found: LogicalLine[] = [];
  while (cursor.next < cursor.lines.length) {
    const start = cursor.lines[cursor.next] ?? '';
    if (start.trim() === '' || isComment(start)) {
      cursor.next++;
      continue;
    }
    const line = cursor.next + 1;
    const joined = joinContinued(cursor, mark);
    found.push({ text: joined, line });
    if (WITH_HEREDOC.test(joined)) skipHeredocs(cursor, joined, line, problems);
  }
  return found;
}

/** Reads the directives at the top and returns the escape character; the first other line ends them. */
function readDirectives(cursor: Cursor, problems: DockerfileProblem[]): string {
  const seen = new Set<string>();
  let mark = '\\';
  for (;;) {
    const [, name = '', value = ''] = DIRECTIVE.exec(cursor.lines[cursor.next] ?? '') ?? [];
    const directive = name.toLowerCase();
    if (!DIRECTIVES.has(directive)) return mark;
    cursor.next++;
    const line = cursor.next;
    if (seen.has(directive)) {
      const message = `the parser directive ${directive} stands twice`;
      problems.push({ line, message, hint: 'delete this line' });
    }
    seen.add(directive);
    if (directive !== 'escape') continue;
    if (value === '\\' || value === '`') mark = value;
    else {
      const message = `the escape character "${show(value)}" is neither \\ nor \``;
      problems.push({ line, message, hint: 'delete the line, or write # escape=`' });
    }
  }
}

/** A lone escape character at the end continues the line; two of them are a literal one. */
function continued(line: string, mark: string): string | undefined {
  const end = line.trimEnd();
  if (!end.endsWith(mark) || end.endsWith(mark + mark)) return undefined;
  return end.slice(0, -1);
}

function joinContinued(cursor: Cursor, mark: string): string {
  const parts: string[] = [];
  while (cursor.next < cursor.lines.length) {
    const line = cursor.lines[cursor.next++] ?? '';
    // Inside a continuation comments and empty lines are left out, and the instruction goes on behind them.
    if (parts.length > 0 && (line.trim() === '' || isComment(line))) continue;
    const open = continued(line, mark);
    parts.push(open ?? line);
    if (open === undefined) break;
  }
  return parts.join('').trim();
}

/** Words of a line that stand outside of quotes, split at blanks. */
function bareWords(text: string): string[] {
  return text
    .replaceAll(/\\.|'[^']*'|"(?:\\.|[^"\\])*"/g, (piece) =>
      piece.startsWith('\\') ? '__' : piece.replaceAll(/\s/g, '_'),
    )
    .split(/\s+/);
}

function skipHeredocs(cursor: Cursor, instruction: string, line: number, problems: DockerfileProblem[]): void {
  for (const word of bareWords(instruction)) {
    const [, dash, rest = ''] = /^\d*<<(-?)([^<]+)$/.exec(word) ?? [];
    const end = rest.replaceAll(/^['"]|['"]$/g, '');
    if (end === '') continue;
    const body = (one: string): string => (dash ? one.replace(/^\t+/, '') : one);
    while (cursor.next < cursor.lines.length && body(cursor.lines[cursor.next] ?? '') !== end) cursor.next++;
    if (cursor.next >= cursor.lines.length) {
      const message = `no line ${show(end)} ends the heredoc that starts here`;
      problems.push({ line, message, hint: `add a line that is exactly ${show(end)} after its text` });
    }
    cursor.next++;
  }
}

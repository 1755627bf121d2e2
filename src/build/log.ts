/** What a build's log says. Everything in it may have been written by the author's own commands: it explains, it never proves. */
import { redact } from '../base/redact.ts';
import { PATHS } from './arguments.ts';

/** Bytes of log that a status keeps. */
const LOG_TAIL_BYTES = 2048;
const MAX_WARNINGS = 5;
/** Lines that are looked at for warnings. */
const MAX_LINES = 200;
const MAX_LINE = 1000;
const MAX_CLAUSE = 500;

// biome-ignore lint/suspicious/noControlCharactersInRegex: terminal control sequences are what this is about.
const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[ -/]*[0-~])?/g;

const LOGFMT = /^time="[^"]*" level=(\w+) msg=(?:"((?:[^"\\]|\\.)*)"|(\S+))$/;
const TIMED = /^(TRAC|DEBU|INFO|WARN|ERRO|FATA|PANI)\[\d+\]\s*(.*)$/;
const LEVELS: Readonly<Record<string, string>> = {
  TRAC: 'trace',
  DEBU: 'debug',
  INFO: 'info',
  WARN: 'warning',
  ERRO: 'error',
  FATA: 'fatal',
  PANI: 'panic',
};

/** What Kaniko says, without time and quotes: `[info] Retrieving image`. It logs in one of two forms, with and without a terminal. */
function spoken(line: string): string {
  const [, level, quoted, bare] = LOGFMT.exec(line) ?? [];
  if (level !== undefined) return `[${level}] ${bare ?? (quoted ?? '').replaceAll(/\\(.)/g, '$1')}`;
  const [, short, text] = TIMED.exec(line) ?? [];
  return short === undefined ? line : `[${LEVELS[short]}] ${text}`;
}

/** Lines as a terminal would leave them: no control sequences, and of a line that was overwritten the last text. */
function plainLines(text: string): string[] {
  return redact(text)
    .replaceAll(ESCAPES, '')
    .split(/\r?\n/)
    .map((line) => line.slice(line.lastIndexOf('\r') + 1))
    .map((line) => spoken(line.replaceAll(/[^\P{C}\t]/gu, '').trimEnd()))
    .filter((line) => line !== '');
}

/** Cut between characters: half of a surrogate pair is no text. */
const shortened = (line: string, max = MAX_LINE): string =>
  line.length > max ? `${line.slice(0, max - 1).replace(/[\ud800-\udbff]$/, '')}…` : line;

/** `: <text>` on one line without its full stop, to go into a sentence; '' for no text. */
export function clause(text: string | undefined): string {
  const line = redact(text ?? '')
    .replaceAll(/[\p{Cc}\s]+/gu, ' ')
    .trim()
    .replace(/[.\s]+$/, '');
  return line === '' ? '' : `: ${shortened(line, MAX_CLAUSE)}`;
}

/** Enough of a log for its last lines, however much of it turns out to be control characters. */
const END_BYTES = 64 * 1024;

/** The last part of a long text, from the beginning of a line on. */
function endOf(text: string): string {
  if (text.length <= END_BYTES) return text;
  const from = text.length - END_BYTES;
  const line = text.indexOf('\n', from) + 1;
  return text.slice(line > 0 ? line : from);
}

/** The last lines of a log, at most `max` bytes of UTF-8: secrets masked before anything is cut, control characters removed, whole lines. */
export function logTail(text: string, max = LOG_TAIL_BYTES): string {
  const kept: string[] = [];
  let room = max;
  for (const line of plainLines(endOf(text))
    .map((line) => shortened(line))
    .reverse()) {
    room -= Buffer.byteLength(line) + 1;
    if (room < -1) break;
    kept.unshift(line);
  }
  return kept.join('\n');
}

const LEVEL = /^\[\w+\] /;
const FINAL = /^error (?:building image|pushing image|checking push permissions|resolving [a-z ]+|changing to root)/i;
/** Says nothing that the reader of a failed build does not know. */
const PREAMBLE = /^error building image: (?:error building stage: )?/i;

/** Kaniko's last error, without its level and with paths as the author knows them; the last line where it gave none; '' for an empty log. */
export function lastError(text: string): string {
  const lines = plainLines(endOf(text)).map((line) => line.replace(LEVEL, '').replace(/^error: /i, ''));
  const line = lines.findLast((one) => FINAL.test(one)) ?? lines.at(-1) ?? '';
  return shortened(line.replace(PREAMBLE, '').replaceAll(`${PATHS.context}/`, ''));
}

const IGNORED = /^\[warning\] (?:#\d+ )?(kaniko does not support .*|\S+ is deprecated, skipping)$/i;
/** Says so much more cheaply of most lines that they are none. */
const MAY_BE_IGNORED = /kaniko does not support|is deprecated, skipping/i;

/** What Kaniko said that it ignores in the Dockerfile: it builds on, but something else than Docker would. At most five texts. */
export function ignoredSyntax(text: string): string[] {
  const lines = text.split('\n').filter((line) => MAY_BE_IGNORED.test(line));
  const found = plainLines(lines.slice(0, MAX_LINES).join('\n'))
    .map((line) => IGNORED.exec(line)?.[1])
    .filter((warning) => warning !== undefined);
  return [...new Set(found)].slice(0, MAX_WARNINGS).map((warning) => shortened(warning));
}

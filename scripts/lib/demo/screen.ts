import { styleText } from 'node:util';

/** How a piece of text looks where colours are wanted. */
export type Style = 'bold' | 'dim' | 'green' | 'red' | 'yellow' | 'cyan';

/** What the screen needs of standard output. */
export interface Output {
  write(text: string): unknown;
  isTTY?: boolean;
  columns?: number;
  rows?: number;
}

const INDENT = '   ';
const PLAIN_WIDTH = 120;
const CLEAR_BELOW = '\u001b[J';

/** Breaks a text at blanks so that no line is longer than `width`; a longer word gets a line of its own. Line breaks stay. */
export function wrap(text: string, width: number): string[] {
  return text.split('\n').flatMap((paragraph) => {
    const lines: string[] = [];
    let line = '';
    for (const word of paragraph.split(' ')) {
      if (line !== '' && line.length + 1 + word.length > width) {
        lines.push(line);
        line = word;
      } else line = line === '' ? word : `${line} ${word}`;
    }
    return [...lines, line];
  });
}

/** `0.4 s`, or `2 min 5 s` from a minute on. */
export function duration(ms: number): string {
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** `7.0 KiB`: size of a file for people. */
export function size(bytes: number): string {
  return bytes < 1024 ? `${bytes} B` : `${(bytes / 1024).toFixed(1)} KiB`;
}

/**
 * Everything the demo prints. Colours only on a terminal and without NO_COLOR; lines that are replaced in place only on a terminal
 * that can move its cursor, and not with CI set.
 */
export class Screen {
  readonly #out: Output;
  readonly #colours: boolean;
  readonly #moves: boolean;
  #live = 0;

  constructor(out: Output, env: Record<string, string | undefined>) {
    const terminal = out.isTTY === true && env.TERM !== 'dumb';
    this.#out = out;
    this.#colours = terminal && !env.NO_COLOR;
    this.#moves = terminal && (!env.CI || env.CI === 'false');
  }

  /** Columns that a line may take, without the indent. */
  get width(): number {
    return Math.max(60, Math.min(this.#out.columns ?? PLAIN_WIDTH, 160) - INDENT.length);
  }

  /** Lines that a block in place may take; undefined where nothing is replaced in place. */
  get liveRows(): number | undefined {
    return this.#moves ? Math.max(8, (this.#out.rows ?? 24) - 4) : undefined;
  }

  /** The text in that style, where colours are wanted. */
  readonly paint = (style: Style, text: string): string =>
    this.#colours && text !== '' ? styleText(style, text, { validateStream: false }) : text;

  /** Lines at the left margin. */
  print(...lines: string[]): void {
    this.#settle();
    this.#out.write(lines.map((line) => `${line}\n`).join(''));
  }

  /** Lines below the current step. */
  say(...lines: string[]): void {
    this.print(...lines.map((line) => (line === '' ? '' : INDENT + line)));
  }

  /** A sentence or more below the current step, wrapped; `indent` blanks deeper. */
  tell(text: string, style?: Style, indent = 0): void {
    const lines = wrap(text, this.width - indent);
    this.say(...lines.map((line) => ' '.repeat(indent) + (style ? this.paint(style, line) : line)));
  }

  /** A command that a person would type. */
  command(text: string): void {
    this.say(`${this.paint('dim', '$')} ${this.paint('cyan', text)}`);
  }

  /** Replaces the block that the last call of `live` drew; where nothing can be replaced it draws nothing. */
  live(lines: readonly string[]): void {
    if (!this.#moves) return;
    this.erase();
    this.#out.write(lines.map((line) => `${INDENT}${line}\n`).join(''));
    this.#live = lines.length;
  }

  /** Takes the block that `live` drew off the screen. */
  erase(): void {
    if (this.#live > 0) this.#out.write(`\u001b[${this.#live}A\r${CLEAR_BELOW}`);
    this.#live = 0;
  }

  /** What `live` drew stays, and the next block starts below. */
  #settle(): void {
    this.#live = 0;
  }
}

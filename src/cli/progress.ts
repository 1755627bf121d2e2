import type { Clock } from '../base/clock.ts';
import type { Io } from './io.ts';
import { age, printable } from './terminal.ts';

const CLEAR = '\r\u001b[K';

/** What a waiting command says meanwhile: one line replaced in place on a terminal, else a line whenever the text changes. */
export class Progress {
  readonly #io: Io;
  readonly #clock: Clock;
  readonly #began: number;
  #shown = '';

  constructor(io: Io, clock: Clock) {
    this.#io = io;
    this.#clock = clock;
    this.#began = clock.monotonic();
  }

  /** Milliseconds since the start. */
  get elapsedMs(): number {
    return this.#clock.monotonic() - this.#began;
  }

  /** Shows what is waited for; hostile text is made printable. */
  say(text: string): void {
    const line = printable(text);
    if (this.#io.live) {
      const room = Math.max(20, (this.#io.columns ?? 80) - 8);
      const short = line.length > room ? `${line.slice(0, room - 1)}…` : line;
      this.#io.err(`${CLEAR}${short} ${age(this.elapsedMs)}`);
    } else if (line !== this.#shown) this.#io.err(`${line}\n`);
    this.#shown = line;
  }

  /** Takes the line off the terminal. */
  end(): void {
    if (this.#io.live && this.#shown !== '') this.#io.err(CLEAR);
    this.#shown = '';
  }
}

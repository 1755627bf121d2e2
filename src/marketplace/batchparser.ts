/** One answer of `git cat-file --batch-command`. */
export type BatchReply = { found: false } | { found: true; type: string; size: number; content?: Buffer };

const NEWLINE = 0x0a;
const MAX_HEADER = 1024;
/** Above these sizes the bytes are skipped and the reply comes without content. */
const MAX_BLOB = 64 * 1024 * 1024;
/** About 180,000 entries; parsing more would hold up everything else. */
const MAX_TREE = 8 * 1024 * 1024;
const HEADER = /^[0-9a-f]{40} (blob|tree|commit|tag) (\d{1,15})$/;
const MISSING = /^\S+ missing$/;

interface OpenReply {
  type: string;
  size: number;
  content: Buffer | undefined;
  filled: number;
}

/**
 * Incremental reader of cat-file's output. Contents are told from headers by their length, so any byte may stand in them.
 */
export class BatchParser {
  readonly #emit: (reply: BatchReply) => void;
  readonly #expectsContents: () => boolean;
  #header = Buffer.alloc(0);
  #open: OpenReply | undefined;

  /** @param expectsContents whether the next reply belongs to a `contents` request. */
  constructor(emit: (reply: BatchReply) => void, expectsContents: () => boolean) {
    this.#emit = emit;
    this.#expectsContents = expectsContents;
  }

  /** Takes the next bytes; returns what is wrong with them, after which the parser must not be used. */
  push(chunk: Buffer): string | undefined {
    let rest = chunk;
    while (rest.length > 0) {
      const step = this.#open ? this.#body(rest) : this.#head(rest);
      if (typeof step === 'string') return step;
      rest = step;
    }
    return undefined;
  }

  #head(bytes: Buffer): Buffer | string {
    const end = bytes.indexOf(NEWLINE);
    const part = end < 0 ? bytes : bytes.subarray(0, end);
    if (this.#header.length + part.length > MAX_HEADER) return 'git cat-file printed a line that is too long';
    this.#header = this.#header.length === 0 ? Buffer.from(part) : Buffer.concat([this.#header, part]);
    if (end < 0) return bytes.subarray(bytes.length);
    const line = this.#header.toString('latin1');
    this.#header = Buffer.alloc(0);
    const rest = bytes.subarray(end + 1);
    if (MISSING.test(line)) {
      this.#emit({ found: false });
      return rest;
    }
    const match = HEADER.exec(line);
    if (!match) return `git cat-file printed "${line.slice(0, 80)}"`;
    const type = match[1] as string;
    const size = Number(match[2]);
    if (this.#expectsContents()) {
      const content = size <= (type === 'blob' ? MAX_BLOB : MAX_TREE) ? Buffer.allocUnsafeSlow(size) : undefined;
      this.#open = { type, size, content, filled: 0 };
    } else this.#emit({ found: true, type, size });
    return rest;
  }

  /** Copies into the one buffer of the object, so that a large blob is never held twice. */
  #body(bytes: Buffer): Buffer | string {
    const open = this.#open as OpenReply;
    if (open.filled < open.size) {
      const taken = open.content
        ? bytes.copy(open.content, open.filled)
        : Math.min(bytes.length, open.size - open.filled);
      open.filled += taken;
      return bytes.subarray(taken);
    }
    if (bytes[0] !== NEWLINE) return 'git cat-file lost count of a blob';
    this.#open = undefined;
    const { type, size, content } = open;
    this.#emit(content ? { found: true, type, size, content } : { found: true, type, size });
    return bytes.subarray(1);
  }
}

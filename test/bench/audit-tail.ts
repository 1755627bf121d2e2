import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

/** One finished write to the API. */
export interface AuditedWrite {
  user: string;
  verb: string;
  /** Like `skills`, with the subresource after a slash. */
  resource: string;
  namespace: string;
  name: string;
  code: number;
  /** When the API server had answered, milliseconds since the epoch. */
  at: number;
}

interface AuditEvent {
  stage: string;
  stageTimestamp: string;
  verb: string;
  user: { username: string };
  objectRef?: { resource?: string; subresource?: string; namespace?: string; name?: string };
  responseStatus?: { code?: number };
}

const CHUNK = 4 * 1024 * 1024;

/** Reads the API server's audit log as it grows: exact times and counts of writes that cost the server nothing. */
export class AuditTail implements Disposable {
  readonly #fd: number;
  readonly #writes: AuditedWrite[] = [];
  readonly #chunk = Buffer.alloc(CHUNK);
  #offset = 0;
  #rest = Buffer.alloc(0);

  constructor(path: string) {
    this.#fd = openSync(path, 'r');
  }

  [Symbol.dispose](): void {
    closeSync(this.#fd);
  }

  /** A position: only what comes after it counts. */
  mark(): number {
    this.#read();
    return this.#writes.length;
  }

  /** The writes after a mark, oldest first. */
  since(mark: number, keep: (write: AuditedWrite) => boolean = () => true): AuditedWrite[] {
    this.#read();
    return this.#writes.slice(mark).filter(keep);
  }

  #read(): void {
    if (fstatSync(this.#fd).size < this.#offset) throw new Error('the audit log was cut off: counts would be wrong');
    for (;;) {
      const count = readSync(this.#fd, this.#chunk, 0, CHUNK, this.#offset);
      if (count === 0) return;
      this.#offset += count;
      this.#take(Buffer.concat([this.#rest, this.#chunk.subarray(0, count)]));
    }
  }

  #take(bytes: Buffer): void {
    const end = bytes.lastIndexOf(10);
    this.#rest = Buffer.from(bytes.subarray(end + 1));
    for (const line of bytes.toString('utf8', 0, Math.max(end, 0)).split('\n')) {
      if (line !== '') this.#add(JSON.parse(line) as AuditEvent);
    }
  }

  #add(event: AuditEvent): void {
    if (event.stage !== 'ResponseComplete') return;
    const { resource = '', subresource, namespace = '', name = '' } = event.objectRef ?? {};
    this.#writes.push({
      user: event.user.username,
      verb: event.verb,
      resource: subresource === undefined ? resource : `${resource}/${subresource}`,
      namespace,
      name,
      code: event.responseStatus?.code ?? 0,
      at: Date.parse(event.stageTimestamp),
    });
  }
}

/** Writes by resource, such as `{skills: 1000, 'skills/status': 1000}`. */
export function byResource(writes: readonly AuditedWrite[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { resource } of writes) counts[resource] = (counts[resource] ?? 0) + 1;
  return counts;
}

/** Writes for the Skills of these names: specs, statuses, and the events about them; all others are for the sources. */
export function skillWrites(writes: readonly AuditedWrite[], skills: ReadonlySet<string>): number {
  // An event is named after its object, a dot and a hash.
  const isOfSkill = ({ resource, name }: AuditedWrite) =>
    resource === 'events' ? skills.has(name.slice(0, name.lastIndexOf('.'))) : resource.startsWith('skills');
  return writes.filter(isOfSkill).length;
}

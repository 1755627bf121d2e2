import { closeSync, openSync, readSync } from 'node:fs';
import { Effects } from '../../support/byo/effects.ts';
import type { ClusterInfo } from '../../support/cluster-info.ts';

/** Looks this often at what the API server has written down. */
const LOOK_MS = 5;
const CHUNK = 1024 * 1024;
/** What the operator writes for builds; the lease, events and the source's own writes are not asked about. */
const RESOURCES = new Set(['jobs', 'secrets', 'skills', 'skills/status']);

interface AuditLine {
  stage: string;
  user: { username: string };
  objectRef?: { resource?: string; subresource?: string };
  responseStatus?: { code?: number };
}

/** Counts what the operator writes to the API, by the audit log, and whatever a test reports with `add`. */
export class AuditedEffects extends Effects {
  readonly #file: number;
  readonly #user: string;
  readonly #timer: NodeJS.Timeout;
  #offset = 0;
  #rest = '';

  constructor(info: ClusterInfo, operatorNamespace: string) {
    super();
    if (info.auditLog === undefined) throw new Error('the API server of this run is not ours: it has no audit log');
    this.#file = openSync(info.auditLog, 'r');
    this.#user = `system:serviceaccount:${operatorNamespace}:skill-operator`;
    this.#read();
    this.#timer = setInterval(() => {
      for (let writes = this.#read(); writes > 0; writes--) this.add('write');
    }, LOOK_MS);
  }

  close(): void {
    clearInterval(this.#timer);
    closeSync(this.#file);
  }

  /** Number of the operator's writes since the last look. */
  #read(): number {
    const buffer = Buffer.alloc(CHUNK);
    let writes = 0;
    for (;;) {
      const length = readSync(this.#file, buffer, 0, CHUNK, this.#offset);
      if (length === 0) return writes;
      this.#offset += length;
      const lines = (this.#rest + buffer.toString('utf8', 0, length)).split('\n');
      this.#rest = lines.pop() ?? '';
      writes += lines.filter(
        (line) => line.includes(this.#user) && this.#isWrite(JSON.parse(line) as AuditLine),
      ).length;
    }
  }

  #isWrite({ stage, user, objectRef, responseStatus }: AuditLine): boolean {
    const { resource = '', subresource } = objectRef ?? {};
    const name = subresource === undefined ? resource : `${resource}/${subresource}`;
    return (
      stage === 'ResponseComplete' &&
      user.username === this.#user &&
      RESOURCES.has(name) &&
      (responseStatus?.code ?? 500) < 300
    );
  }
}

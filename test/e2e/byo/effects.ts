import { closeSync, openSync, readSync } from 'node:fs';
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

/** Counts what the operator does outside its process: writes to the API, and whatever a test reports with `add`. */
export class Effects {
  readonly #file: number;
  readonly #user: string;
  readonly #timer: NodeJS.Timeout;
  #offset = 0;
  #rest = '';
  #left = Number.POSITIVE_INFINITY;
  #act: () => void = () => undefined;

  constructor(info: ClusterInfo, operatorNamespace: string) {
    if (info.auditLog === undefined) throw new Error('the API server of this run is not ours: it has no audit log');
    this.#file = openSync(info.auditLog, 'r');
    this.#user = `system:serviceaccount:${operatorNamespace}:skill-operator`;
    this.#read();
    this.#timer = setInterval(() => {
      for (let writes = this.#read(); writes > 0; writes--) this.add();
    }, LOOK_MS);
  }

  /** One more effect. */
  add(): void {
    this.#left--;
    if (this.#left !== 0) return;
    this.#act();
  }

  /** Calls `act` once, after that many effects from now on. */
  after(count: number, act: () => void): void {
    this.#left = count;
    this.#act = act;
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

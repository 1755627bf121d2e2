import { readFileSync } from 'node:fs';
import type { ClusterInfo } from './cluster-info.ts';

/** One write that the API server finished. */
export interface Write {
  verb: string;
  user: string;
  /** Like `skills`, with the subresource after a slash. */
  resource: string;
  namespace: string;
  name: string;
  code: number;
}

interface AuditEvent {
  stage: string;
  verb: string;
  user: { username: string };
  objectRef?: { resource?: string; subresource?: string; namespace?: string; name?: string };
  responseStatus?: { code?: number };
}

/** Position in the audit log, to read only what comes after it. */
export type Bookmark = number;

/** Where the log ends now. */
export function bookmark(info: ClusterInfo): Bookmark {
  return readLog(info).length;
}

function readLog(info: ClusterInfo): Buffer {
  if (info.auditLog === undefined)
    throw new Error('the API server of this run is not ours: it has no audit log to count in');
  return readFileSync(info.auditLog);
}

/** The writes since a bookmark, oldest first; `keep` chooses, for example by user or namespace. */
export function writesSince(info: ClusterInfo, since: Bookmark, keep: (write: Write) => boolean = () => true): Write[] {
  const lines = readLog(info).subarray(since).toString('utf8').split('\n');
  const writes: Write[] = [];
  for (const line of lines) {
    if (!line.endsWith('}')) continue;
    const event = JSON.parse(line) as AuditEvent;
    if (event.stage !== 'ResponseComplete') continue;
    const { resource = '', subresource, namespace = '', name = '' } = event.objectRef ?? {};
    writes.push({
      verb: event.verb,
      user: event.user.username,
      resource: subresource === undefined ? resource : `${resource}/${subresource}`,
      namespace,
      name,
      code: event.responseStatus?.code ?? 0,
    });
  }
  return writes.filter(keep);
}

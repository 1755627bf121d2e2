import type { IncomingHttpHeaders } from 'node:http';

/** Who sends a delivery, as far as its headers tell; also a metric label, so the set is closed. */
type GitHost = 'github' | 'gitlab' | 'gitea' | 'forgejo' | 'bitbucket' | 'generic';

/** What a delivery asks for: `push` starts a pass, `ping` only wants an answer, `other` is of no interest. */
type EventKind = 'push' | 'ping' | 'other';

/** Evidence that the sender knows the token. */
export type Proof =
  /** HMAC-SHA256 of `prefix` and the body, as 32 bytes; `at` is the signed time in seconds since the epoch. */
  | { scheme: 'hmac'; mac: Buffer; prefix: string; at?: number }
  /** The token itself. */
  | { scheme: 'token'; token: string }
  /** Standard Webhooks: one of `macs` is the HMAC-SHA256 of `prefix` and the body under the decoded key of a `whsec_` token. */
  | { scheme: 'standard'; macs: Buffer[]; prefix: string; at: number };

/** What the headers of a delivery say, before anything of it is believed. */
export interface Claim {
  host: GitHost;
  event: EventKind;
  /** The event's name as it was sent, at most 64 printable characters; for the log, after the proof held. */
  eventName: string;
  /** The host's id of the delivery where it has the form of one; for the log too. */
  delivery?: string;
  /** One or, at GitLab, two; the form of the token decides which counts. */
  proofs: Proof[];
}

/** How a host names the header of its event, and which of its events mean what. */
interface Host {
  host: GitHost;
  header: string;
  push: readonly string[];
  ping: readonly string[];
}

// Forgejo and Gitea also send the headers of GitHub, and Forgejo those of Gitea: the order matters.
const HOSTS: readonly Host[] = [
  { host: 'forgejo', header: 'x-forgejo-event', push: ['push', 'create', 'delete'], ping: ['ping'] },
  { host: 'gitea', header: 'x-gitea-event', push: ['push', 'create', 'delete'], ping: ['ping'] },
  { host: 'github', header: 'x-github-event', push: ['push', 'create', 'delete'], ping: ['ping'] },
  { host: 'gitlab', header: 'x-gitlab-event', push: ['Push Hook', 'Tag Push Hook'], ping: [] },
  { host: 'bitbucket', header: 'x-event-key', push: ['repo:push', 'repo:refs_changed'], ping: ['diagnostics:ping'] },
];

const MAX_EVENT_NAME = 64;
const MAX_SIGNATURES = 8;
const MAX_ID = 256;

function one(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** The 32 bytes of `sha256=<hex>`, or of bare hex where the host sends that. */
function macOf(text: string | undefined, bare = false): Buffer | undefined {
  const match = /^(sha256=)?([0-9a-f]{64})$/i.exec(text ?? '');
  if (!match || (match[1] === undefined && !bare)) return undefined;
  return Buffer.from(match[2] ?? '', 'hex');
}

const hmac = (mac: Buffer | undefined): Proof[] => (mac ? [{ scheme: 'hmac', mac, prefix: '' }] : []);

function seconds(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,12}$/.test(text) ? Number(text) : undefined;
}

/** https://www.standardwebhooks.com: `v1,<base64>` signatures, separated by spaces, over `<id>.<timestamp>.<body>`. */
function standard(headers: IncomingHttpHeaders): Proof[] {
  const id = one(headers, 'webhook-id');
  const timestamp = one(headers, 'webhook-timestamp');
  const at = seconds(timestamp);
  if (id === undefined || id.length > MAX_ID || at === undefined) return [];
  const macs = (one(headers, 'webhook-signature') ?? '')
    .split(' ', MAX_SIGNATURES)
    .flatMap((entry) => (/^v1,[A-Za-z0-9+/]{43}=$/.test(entry) ? [Buffer.from(entry.slice(3), 'base64')] : []));
  return macs.length > 0 ? [{ scheme: 'standard', macs, prefix: `${id}.${timestamp}.`, at }] : [];
}

/** `X-Signature: sha256=<hex>`; with `X-Signature-Timestamp` the time is signed too, as `<timestamp>.<body>`. */
function generic(headers: IncomingHttpHeaders): Proof[] {
  const mac = macOf(one(headers, 'x-signature'));
  if (!mac) return standard(headers);
  if (headers['x-signature-timestamp'] === undefined) return hmac(mac);
  const timestamp = one(headers, 'x-signature-timestamp');
  const at = seconds(timestamp);
  return at === undefined ? [] : [{ scheme: 'hmac', mac, prefix: `${timestamp}.`, at }];
}

function proofsOf(host: GitHost, headers: IncomingHttpHeaders): Proof[] {
  const token = one(headers, 'x-gitlab-token');
  switch (host) {
    case 'forgejo':
      return hmac(macOf(one(headers, 'x-forgejo-signature') ?? one(headers, 'x-gitea-signature'), true));
    case 'gitea':
      return hmac(macOf(one(headers, 'x-gitea-signature'), true));
    case 'github':
      return hmac(macOf(one(headers, 'x-hub-signature-256')));
    case 'bitbucket':
      return hmac(macOf(one(headers, 'x-hub-signature')));
    case 'gitlab':
      return [...standard(headers), ...(token === undefined ? [] : [{ scheme: 'token', token } as const])];
    case 'generic':
      return generic(headers);
  }
}

const DELIVERY_HEADERS = ['x-gitea-delivery', 'x-github-delivery', 'x-gitlab-event-uuid', 'x-request-id', 'webhook-id'];

function deliveryOf(headers: IncomingHttpHeaders): { delivery?: string } {
  const id = DELIVERY_HEADERS.map((name) => one(headers, name)).find((value) => value !== undefined);
  return id !== undefined && /^[\w.-]{1,64}$/.test(id) ? { delivery: id } : {};
}

function kindOf(host: Host, name: string): EventKind {
  if (host.push.includes(name)) return 'push';
  return host.ping.includes(name) ? 'ping' : 'other';
}

/** Reads the headers of a delivery; a sender without an event header of its own is `generic`, and everything it sends is a push. */
export function claimOf(headers: IncomingHttpHeaders): Claim {
  const host = HOSTS.find(({ header }) => headers[header] !== undefined);
  const common = { ...deliveryOf(headers), proofs: proofsOf(host?.host ?? 'generic', headers) };
  if (!host) return { host: 'generic', event: 'push', eventName: 'push', ...common };
  const name = one(headers, host.header) ?? '';
  return {
    host: host.host,
    event: kindOf(host, name),
    eventName: name.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, MAX_EVENT_NAME),
    ...common,
  };
}

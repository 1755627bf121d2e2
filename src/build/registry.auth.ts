import type { Clock } from '../base/clock.ts';
import { waiting } from '../base/errors.ts';
import { holdSecret } from '../base/redact.ts';
import { type Challenge, parseChallenge } from './challenge.ts';
import type { RegistryCredential } from './dockerconfig.ts';
import { refused, unexpected } from './registry.errors.ts';
import type { Answer, Call, RegistryTransport } from './registry.http.ts';

/** Reads the operator's credential on use, so that a rotated Secret counts at once. `hosts`: the only hosts that it may be sent to. */
export type ReadCredential = (
  repository: string,
  signal: AbortSignal,
) => Promise<(RegistryCredential & { hosts?: readonly string[] | undefined }) | undefined>;

interface Grant {
  header: string;
  /** By the clock's wall time. */
  until: number;
}

/** What a token lives when the registry does not say, and how much of it is left unused. */
const DEFAULT_TOKEN_MS = 60_000;
const TOKEN_MARGIN_MS = 10_000;
const BASIC_MS = 300_000;
/** Grants kept at once: one per repository and method. */
const MAX_GRANTS = 1000;

type Held = Awaited<ReturnType<ReadCredential>>;

const basicHeader = ({ username, password }: RegistryCredential): string =>
  `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;

/** The annotation `hosts` of a Secret binds its values to these hosts. */
function mayGoTo(credential: NonNullable<Held>, url: URL): void {
  if (!credential.hosts || credential.hosts.includes(url.hostname) || credential.hosts.includes(url.host)) return;
  throw waiting(
    'SecretHostNotAllowed',
    `the registry Secret may not be sent to ${url.host}: its annotation skills.tfrobot.io/hosts names other hosts; add ${url.host} there`,
  );
}

/** Answers the challenges of a registry: basic, or a token of the service that it names. Source: distribution, token authentication. */
export class RegistryAuth {
  readonly #transport: RegistryTransport;
  readonly #read: ReadCredential | undefined;
  readonly #clock: Clock;
  readonly #grants = new Map<string, Grant>();

  constructor(transport: RegistryTransport, read: ReadCredential | undefined, clock: Clock) {
    this.#transport = transport;
    this.#read = read;
    this.#clock = clock;
  }

  /** Sends a call with the grant that is known, and once more with a new one when the registry asks for it. */
  async send(call: Call, signal: AbortSignal): Promise<Answer> {
    const key = `${call.method} ${call.repository} ${call.anonymous ?? false}`;
    const known = this.#grants.get(key);
    const header = known && known.until > this.#clock.now() ? known.header : undefined;
    const first = await this.#transport.send(call, header, signal);
    if (first.status !== 401) return first;
    this.#grants.delete(key);
    const challenge = parseChallenge(first.all('www-authenticate'));
    const grant = challenge && (await this.#grant(challenge, call, signal));
    if (!grant) return first;
    const second = await this.#transport.send(call, grant.header, signal);
    if (second.status === 401) return second;
    if (this.#grants.size >= MAX_GRANTS) this.#grants.clear();
    this.#grants.set(key, grant);
    return second;
  }

  async #grant(challenge: Challenge, call: Call, signal: AbortSignal): Promise<Grant | undefined> {
    const credential = call.anonymous ? undefined : await this.#read?.(call.repository, signal);
    if (credential) holdSecret(credential.password);
    if (challenge.scheme === 'bearer') return await this.#token(challenge, credential, call, signal);
    if (!credential) return undefined;
    mayGoTo(credential, this.#transport.base);
    return { header: basicHeader(credential), until: this.#clock.now() + BASIC_MS };
  }

  async #token(
    challenge: Challenge & { scheme: 'bearer' },
    credential: Held,
    call: Call,
    signal: AbortSignal,
  ): Promise<Grant | undefined> {
    const url = URL.parse(challenge.realm, this.#transport.base.href);
    if (!url || !this.#transport.allows(url)) throw unexpected(call, 'names a token service that is no https URL');
    if (credential) mayGoTo(credential, url);
    if (challenge.service) url.searchParams.set('service', challenge.service);
    for (const scope of challenge.scope?.split(' ') ?? []) url.searchParams.append('scope', scope);
    const headers: Record<string, string> = credential ? { authorization: basicHeader(credential) } : {};
    const answer = await this.#transport.exchange('GET', url, headers, signal);
    if (call.anonymous && [400, 401, 403].includes(answer.status)) return undefined;
    const tokenCall = { host: url.host, action: `the request for a token for ${call.action}` };
    if (answer.status !== 200) {
      const [retryAfter] = answer.all('retry-after');
      throw refused(tokenCall, { status: answer.status, text: answer.text, retryAfter }, this.#clock.now());
    }
    return this.#grantOf(answer, tokenCall);
  }

  #grantOf(answer: Answer, call: Pick<Call, 'host' | 'action'>): Grant {
    const { token, life } = tokenOf(answer.text);
    if (token === undefined) throw unexpected(call, 'gave no usable token');
    holdSecret(token);
    return { header: `Bearer ${token}`, until: this.#clock.now() + life - TOKEN_MARGIN_MS };
  }
}

/** Token and life in milliseconds of a token service's answer. */
function tokenOf(text: string): { token?: string; life: number } {
  try {
    const body = JSON.parse(text) as Record<string, unknown> | null;
    const value = body?.token ?? body?.access_token;
    const life = typeof body?.expires_in === 'number' ? body.expires_in * 1000 : DEFAULT_TOKEN_MS;
    return typeof value === 'string' && /^[\x21-\x7e]+$/.test(value) ? { token: value, life } : { life };
  } catch {
    return { life: 0 };
  }
}

import { createPrivateKey, type KeyObject, sign } from 'node:crypto';
import type { Clock } from '../base/clock.ts';
import { waiting } from '../base/errors.ts';
import { holdSecret } from '../base/redact.ts';
import { credentialHash } from './environment.ts';
import { type ApiCall, callApi, unexpected } from './githubapp.http.ts';
import type { GitCredential, GitHubApp } from './port.ts';
import type { ProxyRoute } from './proxy.ts';
import type { RemoteUrl } from './url.ts';
import { waitFor } from './wait.ts';

/** For whom a token is wanted, and how its API is reached. */
export interface TokenRequest {
  app: GitHubApp;
  /** The repository's address: the token is for its host alone. */
  remote: Pick<RemoteUrl, 'protocol' | 'host'>;
  /** PEM of the authority of an enterprise server, from the same Secret. */
  caCert?: string | undefined;
  proxy?: ProxyRoute | undefined;
  /** Deadline of one API call in milliseconds; never above half a minute. */
  timeoutMs: number;
}

interface Token {
  value: string;
  /** Wall clock, milliseconds, after which a new one is fetched. */
  freshUntil: number;
}

const DEFAULT_BASE = 'https://api.github.com';
const MAX_TIMEOUT_MS = 30_000;
/** A token that ends sooner could end in the middle of a fetch. */
const SPARE_MS = 5 * 60_000;
/** GitHub refuses assertions of more than ten minutes, and some clocks are ahead. */
const JWT_SECONDS = 540;
const JWT_BACKDATE_SECONDS = 60;
/** The user name says nothing to GitHub; this one its documentation uses. */
const TOKEN_USER = 'x-access-token';
const MAX_TOKEN = 4096;

const invalid = (why: string) => waiting('SecretInvalid', why);

/** A GitHub App whose values were checked. */
interface CheckedApp {
  id: string;
  key: KeyObject;
  base: URL;
  installation: { id: string } | { owner: string };
}

function keyOf(pem: string): KeyObject {
  const why =
    'githubAppPrivateKey in the Secret is no unencrypted RSA private key: store the .pem file that GitHub handed out for the app';
  let key: KeyObject;
  try {
    key = createPrivateKey(pem);
  } catch {
    // The library's words could repeat parts of the key.
    throw invalid(why);
  }
  if (key.asymmetricKeyType !== 'rsa') throw invalid(why);
  return key;
}

function baseOf(text: string): URL {
  const url = URL.parse(text.trim());
  const plain = url && url.username === '' && url.password === '' && url.search === '' && url.hash === '';
  if (plain && url.protocol === 'https:') return url;
  throw invalid(
    'githubAppBaseURL in the Secret is no plain https address: write the API of the server, like https://github.example.com/api/v3',
  );
}

function checkedApp(app: GitHubApp): CheckedApp {
  const { appID, installationID, owner, privateKey, baseURL } = app;
  if (!/^[A-Za-z0-9_.-]{1,100}$/.test(appID)) {
    throw invalid("githubAppID in the Secret is no app id or client id: copy it from the app's settings");
  }
  if (installationID !== undefined && !/^\d{1,20}$/.test(installationID)) {
    throw invalid(
      "githubAppInstallationID in the Secret is no number: copy it from the end of the URL of the installation's settings",
    );
  }
  if (owner !== undefined && !/^[A-Za-z0-9_.-]{1,100}$/.test(owner)) {
    throw invalid('githubAppInstallationOwner in the Secret is no name of an organization or user: correct it');
  }
  const installation =
    installationID !== undefined ? { id: installationID } : owner !== undefined ? { owner } : undefined;
  if (!installation) {
    throw invalid('the Secret of a GitHub App needs githubAppInstallationID or githubAppInstallationOwner: add one');
  }
  return { id: appID, key: keyOf(privateKey), base: baseOf(baseURL ?? DEFAULT_BASE), installation };
}

/**
 * Refuses hosts that the app's API does not belong to: api.github.com gives tokens for github.com, an enterprise server for itself.
 * @throws PolicyError `SecretHostNotAllowed`, `SecretInvalid` (Waiting).
 */
function checkTarget(remote: TokenRequest['remote'], base: URL): void {
  if (remote.protocol !== 'https') {
    throw invalid('a GitHub App works with https URLs alone: write the https URL of the repository');
  }
  const host = base.hostname.toLowerCase();
  if (remote.host === host || `api.${remote.host}` === host) return;
  throw waiting(
    'SecretHostNotAllowed',
    `the token of this GitHub App is for ${host.replace(/^api\./, '')} and may not be sent to ${remote.host}: correct the URL, or set githubAppBaseURL in the Secret to the API of that server`,
  );
}

const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** The signed assertion (RS256) by which the app shows who it is. Source: GitHub, "Generating a JSON Web Token (JWT) for a GitHub App". */
export function appJwt(id: string, key: KeyObject, nowMs: number): string {
  const now = Math.floor(nowMs / 1000);
  const claims = { iat: now - JWT_BACKDATE_SECONDS, exp: now + JWT_SECONDS, iss: id };
  const text = `${part({ alg: 'RS256', typ: 'JWT' })}.${part(claims)}`;
  return `${text}.${sign('RSA-SHA256', Buffer.from(text), key).toString('base64url')}`;
}

const cacheKey = (githubApp: GitHubApp): string => credentialHash({ githubApp });

/** Installation tokens of GitHub Apps: cached until shortly before they end, fetched once for all who wait. */
export class GitHubAppTokens {
  readonly #clock: Clock;
  readonly #closing: AbortSignal;
  readonly #tokens = new Map<string, Token>();
  readonly #flights = new Map<string, Promise<Token>>();

  /** @param closing aborts when the process ends. */
  constructor(clock: Clock, closing: AbortSignal) {
    this.#clock = clock;
    this.#closing = closing;
  }

  /**
   * User name and password for Git on the remote of the request.
   * @throws PolicyError `SecretInvalid`, `SecretHostNotAllowed`, `GitHubApp…`, `GitRateLimited` (Waiting); `GitUnreachable`, `GitTimeout` (Retry).
   */
  async credential(request: TokenRequest, signal: AbortSignal): Promise<GitCredential> {
    const key = cacheKey(request.app);
    const known = this.#tokens.get(key);
    const app = checkedApp(request.app);
    checkTarget(request.remote, app.base);
    const fresh = known && known.freshUntil > this.#clock.now();
    const token = fresh ? known : await waitFor(this.#flight(key, app, request), signal);
    return { username: TOKEN_USER, password: token.value };
  }

  /** The server did not take the token: the next request gets a new one. */
  forget(app: GitHubApp): void {
    this.#tokens.delete(cacheKey(app));
  }

  #flight(key: string, app: CheckedApp, request: TokenRequest): Promise<Token> {
    const running = this.#flights.get(key);
    if (running !== undefined) return running;
    const flight = this.#fetch(app, request)
      .then((token) => {
        this.#drop();
        this.#tokens.set(key, token);
        return token;
      })
      .finally(() => this.#flights.delete(key));
    // Every waiter may have left; the failure is not unhandled then.
    flight.catch(() => undefined);
    this.#flights.set(key, flight);
    return flight;
  }

  async #fetch(app: CheckedApp, request: TokenRequest): Promise<Token> {
    const jwt = appJwt(app.id, app.key, this.#clock.now());
    holdSecret(jwt);
    const shared = {
      jwt,
      base: app.base,
      app: app.id,
      caCert: request.caCert,
      proxy: request.proxy,
      timeoutMs: Math.min(request.timeoutMs, MAX_TIMEOUT_MS),
      now: this.#clock.now(),
    };
    const call = (method: ApiCall['method'], path: string, body?: object): ApiCall => ({
      ...shared,
      method,
      path,
      body,
    });
    const id = 'id' in app.installation ? app.installation.id : await this.#idOf(app.installation.owner, call);
    // Less than the app may do: reading is all that is needed.
    const create = call('POST', `/app/installations/${id}/access_tokens`, { permissions: { contents: 'read' } });
    const { token, expires_at } = (await callApi(create, this.#closing)) ?? {};
    const expires = typeof expires_at === 'string' ? Date.parse(expires_at) : Number.NaN;
    if (
      typeof token !== 'string' ||
      !/^[\x21-\x7e]+$/.test(token) ||
      token.length > MAX_TOKEN ||
      Number.isNaN(expires)
    ) {
      throw unexpected(create, 'has no usable token');
    }
    holdSecret(token);
    return { value: token, freshUntil: expires - SPARE_MS };
  }

  /** Organizations and users are asked for at different addresses. */
  async #idOf(owner: string, call: (method: ApiCall['method'], path: string) => ApiCall): Promise<string> {
    const ofOrganization = call('GET', `/orgs/${owner}/installation`);
    const found =
      (await callApi({ ...ofOrganization, absent: true }, this.#closing)) ??
      (await callApi(call('GET', `/users/${owner}/installation`), this.#closing));
    if (typeof found?.id === 'number' && Number.isSafeInteger(found.id)) return String(found.id);
    throw unexpected(ofOrganization, 'has no id');
  }

  #drop(): void {
    const now = this.#clock.now();
    for (const [key, { freshUntil }] of this.#tokens) if (freshUntil <= now) this.#tokens.delete(key);
  }
}

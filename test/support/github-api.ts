import { createPublicKey, generateKeyPairSync, randomBytes, verify } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/** An answer that the next request gets instead of the usual one; `silent`: none at all. */
export type Fault = { status: number; headers?: Record<string, string>; body?: string } | 'silent';

/** A key pair of an app; the private half as GitHub hands it out. */
export const newAppKey = (): string =>
  generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs1', format: 'pem' }).toString();

interface Installation {
  id: number;
  account: string;
  type: 'Organization' | 'User';
  suspended?: boolean;
}

interface ApiOptions {
  tls: { cert: string | Buffer; key: string | Buffer };
  appID: string;
  privateKey: string;
  installations: Installation[];
  /** Makes the tokens; default: random ones. */
  token?: () => string;
  /** Life of a token in milliseconds; GitHub's is an hour. */
  lifeMs?: number;
}

const JWT_MAX_SECONDS = 600;

/**
 * The part of GitHub's REST API that a GitHub App needs, by its published description ("REST API endpoints for GitHub Apps", version
 * 2022-11-28): the installation of an organization or user, and installation access tokens. It checks the assertion as GitHub does:
 * RS256 by the app's key, `iss`, `iat` not in the future, `exp` at most ten minutes ahead.
 */
export class GitHubApi implements AsyncDisposable {
  /** `<method> <path>` of every request, oldest first. */
  readonly requests: string[] = [];
  /** Bodies of the requests for tokens. */
  readonly bodies: unknown[] = [];
  /** Answers of the next requests, first one first. */
  readonly faults: Fault[] = [];
  readonly #options: ApiOptions;
  readonly #server: Server;

  private constructor(options: ApiOptions) {
    this.#options = options;
    this.#server = createServer(options.tls, (request, response) => void this.#serve(request, response));
  }

  /** Listens on a free port of 127.0.0.1. */
  static async start(options: ApiOptions): Promise<GitHubApi> {
    const api = new GitHubApi(options);
    api.#server.listen(0, '127.0.0.1');
    await once(api.#server, 'listening');
    return api;
  }

  /** What an enterprise server is addressed by: `https://127.0.0.1:<port>/api/v3`. */
  get baseURL(): string {
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}/api/v3`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? '').replace(/^\/api\/v3/, '');
    this.requests.push(`${request.method} ${path}`);
    const sent = await text(request);
    const fault = this.faults.shift();
    if (fault === 'silent') return;
    if (fault) {
      response.writeHead(fault.status, fault.headers ?? {}).end(fault.body ?? '');
      return;
    }
    const [status, body] = this.#answer(request, path, sent);
    response.writeHead(status, { 'content-type': 'application/json; charset=utf-8' }).end(JSON.stringify(body));
  }

  #answer({ method, headers }: IncomingMessage, path: string, body: string): [number, object] {
    const problem = this.#assertionProblem(headers.authorization);
    if (problem) return [401, { message: problem }];
    const absent: [number, object] = [404, { message: 'Not Found' }];
    const { installations } = this.#options;
    const [, kind, account] = /^\/(orgs|users)\/([^/]+)\/installation$/.exec(path) ?? [];
    if (method === 'GET' && kind) {
      const type = kind === 'orgs' ? 'Organization' : 'User';
      const found = installations.find((one) => one.account === account && one.type === type);
      return found ? [200, { id: found.id, account: { login: found.account } }] : absent;
    }
    const [, id] = /^\/app\/installations\/(\d+)\/access_tokens$/.exec(path) ?? [];
    const found = installations.find((one) => String(one.id) === id);
    if (method !== 'POST' || !found) return absent;
    if (found.suspended) return [403, { message: 'This installation has been suspended' }];
    this.bodies.push(JSON.parse(body));
    const { token = () => `ghs_${randomBytes(18).toString('hex')}`, lifeMs = 3_600_000 } = this.#options;
    const expires_at = `${new Date(Date.now() + lifeMs).toISOString().slice(0, 19)}Z`;
    return [201, { token: token(), expires_at, permissions: { contents: 'read', metadata: 'read' } }];
  }

  #assertionProblem(authorization = ''): string | undefined {
    const [head = '', claims = '', signature = ''] = authorization.replace(/^Bearer /, '').split('.');
    const json = (text: string) => JSON.parse(Buffer.from(text, 'base64url').toString('utf8'));
    const key = createPublicKey(this.#options.privateKey);
    if (!verify('RSA-SHA256', Buffer.from(`${head}.${claims}`), key, Buffer.from(signature, 'base64url')))
      return 'A JSON web token could not be decoded';
    const { iss, iat, exp } = json(claims);
    const now = Date.now() / 1000;
    if (json(head).alg !== 'RS256' || String(iss) !== this.#options.appID) return 'Integration not found';
    if (iat > now)
      return "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued";
    if (exp < now || exp > now + JWT_MAX_SECONDS) return "'Expiration time' claim ('exp') is too far in the future";
    return undefined;
  }
}

/** One exchange with the REST API of GitHub; beside Git the only file of this room that reaches outside. */
import { isIP } from 'node:net';
import { Agent, type Dispatcher, ProxyAgent, request } from 'undici';
import { DeadlineExceeded, withDeadline } from '../base/deadline.ts';
import { messageOf, PolicyError, retry, waiting } from '../base/errors.ts';
import { innermostCode, isTlsFailure, readCapped } from '../base/http.ts';
import { holdSecret } from '../base/redact.ts';
import { classifyProxyError } from './errors.proxy.ts';
import type { ProxyRoute } from './proxy.ts';

/** A call in the name of a GitHub App. */
export interface ApiCall {
  method: 'GET' | 'POST';
  /** Path below `base`, already encoded. */
  path: string;
  body?: object | undefined;
  /** Id of the app, for messages. */
  app: string;
  jwt: string;
  /** https address of the API. */
  base: URL;
  caCert?: string | undefined;
  proxy?: ProxyRoute | undefined;
  timeoutMs: number;
  /** Wall clock, milliseconds. */
  now: number;
  /** 404 is an answer: undefined. */
  absent?: boolean;
}

interface Answer {
  status: number;
  text: string;
  header(name: string): string | undefined;
}

const API_VERSION = '2022-11-28';
const MAX_BODY = 64 * 1024;
const LIMITS_MS = { least: 1_000, most: 3_600_000, usual: 60_000 };

/** The error for an answer that GitHub's description does not know. */
export const unexpected = (call: ApiCall, what: string): PolicyError =>
  retry(
    'GitOperationFailed',
    `the answer of ${call.base.host} to ${call.method} ${call.path} ${what}: check githubAppBaseURL in the Secret; the operator tries again by itself`,
  );

/**
 * Sends one call and returns the JSON object of its answer; redirects are never followed.
 * @throws PolicyError with a reason for each refusal.
 */
export async function callApi(call: ApiCall, signal: AbortSignal): Promise<Record<string, unknown> | undefined> {
  const answer = await exchange(call, signal);
  if (answer.status === 404 && call.absent) return undefined;
  if (answer.status < 200 || answer.status >= 300) throw refusal(call, answer);
  try {
    const json: unknown = JSON.parse(answer.text);
    if (typeof json === 'object' && json !== null) return json as Record<string, unknown>;
  } catch {
    // Told below; the text itself may hold a token.
  }
  throw unexpected(call, 'is no JSON object');
}

function dispatcherOf({ base, caCert, proxy }: ApiCall): Dispatcher {
  const tls = caCert === undefined ? {} : { ca: caCert };
  if (!proxy) return new Agent({ connections: 1, connect: tls });
  // Behind a tunnel the library takes the name from here alone; an address is no server name.
  const servername = isIP(base.hostname) === 0 ? { servername: base.hostname } : {};
  const { url, username, password } = proxy;
  const basic = username === undefined ? undefined : Buffer.from(`${username}:${password ?? ''}`).toString('base64');
  if (basic) holdSecret(basic);
  return new ProxyAgent({
    uri: url,
    requestTls: { ...tls, ...servername },
    ...(basic ? { token: `Basic ${basic}` } : {}),
  });
}

async function exchange(call: ApiCall, signal: AbortSignal): Promise<Answer> {
  const dispatcher = dispatcherOf(call);
  try {
    return await withDeadline(signal, call.timeoutMs, (bounded) => send(call, dispatcher, bounded));
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof PolicyError ? error : transportError(call, error);
  } finally {
    // Tokens last an hour: no connection is worth keeping that long. A destroyed one may still say that it was.
    void dispatcher.destroy().catch(() => undefined);
  }
}

async function send(call: ApiCall, dispatcher: Dispatcher, signal: AbortSignal): Promise<Answer> {
  const url = new URL(call.base.pathname.replace(/\/+$/, '') + call.path, call.base);
  const response = await request(url, {
    method: call.method,
    headers: {
      accept: 'application/vnd.github+json',
      authorization: `Bearer ${call.jwt}`,
      'user-agent': 'skill-operator',
      'x-github-api-version': API_VERSION,
      ...(call.body ? { 'content-type': 'application/json' } : {}),
    },
    body: call.body ? JSON.stringify(call.body) : null,
    dispatcher,
    signal,
  });
  const body = await readCapped(response.body, MAX_BODY, () => unexpected(call, `is larger than ${MAX_BODY} bytes`));
  return {
    status: response.statusCode,
    text: body.toString('utf8'),
    header: (name) => [response.headers[name]].flat()[0],
  };
}

/** GitHub's own words, shortened: they are foreign text. */
function words({ text }: Answer): string {
  try {
    const { message } = JSON.parse(text) as { message?: unknown };
    return typeof message === 'string' ? message.replaceAll(/\p{Cc}/gu, ' ').slice(0, 200) : '';
  } catch {
    return '';
  }
}

/** Milliseconds that GitHub wants to be left alone. Source: GitHub, "Rate limits for the REST API". */
export function pauseMs(header: Answer['header'], now: number): number {
  const after = header('retry-after');
  const reset = header('x-ratelimit-remaining') === '0' ? Number(header('x-ratelimit-reset')) * 1000 - now : Number.NaN;
  const seconds = after === undefined ? Number.NaN : Number(after) * 1000;
  const date = after === undefined ? Number.NaN : Date.parse(after) - now;
  const given = [seconds, date, reset].find((ms) => Number.isFinite(ms)) ?? LIMITS_MS.usual;
  return Math.min(Math.max(given, LIMITS_MS.least), LIMITS_MS.most);
}

const isLimited = (answer: Answer): boolean =>
  answer.status === 429 ||
  (answer.status === 403 &&
    (answer.header('x-ratelimit-remaining') === '0' ||
      answer.header('retry-after') !== undefined ||
      /rate limit/i.test(words(answer))));

function refusal(call: ApiCall, answer: Answer): PolicyError {
  const { status } = answer;
  const host = call.base.host;
  const said = words(answer);
  const quoted = said === '' ? '' : ` ("${said}")`;
  if (isLimited(answer)) {
    return waiting(
      'GitRateLimited',
      `${host} asks to slow down (HTTP ${status}): the operator waits as long as it was told; raise spec.interval if this returns`,
      { retryAfterMs: pauseMs(answer.header, call.now) },
    );
  }
  if (status === 401) {
    return waiting(
      'GitHubAppKeyRefused',
      `${host} does not accept the key of GitHub App ${call.app}${quoted}: correct githubAppID and githubAppPrivateKey in the Secret, and check that the operator's clock is right`,
    );
  }
  if (status === 404) {
    return waiting(
      'GitHubAppNotInstalled',
      `${host} knows no such installation of GitHub App ${call.app}: install the app on the account of the repository, or correct githubAppInstallationID or githubAppInstallationOwner in the Secret`,
    );
  }
  if (status === 403 || status === 422) {
    return waiting(
      'GitHubAppForbidden',
      `${host} gives GitHub App ${call.app} no token${quoted}: the installation must not be suspended and needs the permission Contents: read`,
    );
  }
  if (status >= 300 && status < 400) {
    return waiting(
      'RedirectRefused',
      `${host} redirects to another address: write the final address of the API into githubAppBaseURL of the Secret; redirects are not followed because credentials would go along`,
    );
  }
  if (status >= 500) {
    return retry(
      'GitUnreachable',
      `${host} answers with server error ${status}: the operator tries again by itself; if it stays, look at the server`,
    );
  }
  return unexpected(call, `has the status ${status}`);
}

function transportError(call: ApiCall, error: unknown): PolicyError {
  const { host } = call.base;
  if (error instanceof DeadlineExceeded) {
    return retry(
      'GitTimeout',
      `${host} did not hand out a token for GitHub App ${call.app} within ${Math.round(call.timeoutMs / 100) / 10} s: look at the server, or raise spec.timeout`,
    );
  }
  const code = innermostCode(error) ?? '';
  if (isTlsFailure(code)) {
    return waiting(
      'TLSVerificationFailed',
      `the certificate of ${host} is not trusted (${code}): put the issuing CA into ca.crt of the Secret, or renew the certificate`,
    );
  }
  return (
    proxyError(call, code, messageOf(error)) ??
    retry(
      'GitUnreachable',
      `no connection to ${host}${code ? ` (${code})` : ''}: check githubAppBaseURL in the Secret, the server, and the network policies of the operator's namespace`,
    )
  );
}

/** The HTTP library's words turned into those of libcurl, so that both ways through a proxy fail alike. */
function proxyError({ proxy, base }: ApiCall, code: string, message: string): PolicyError | undefined {
  if (!proxy) return undefined;
  const status = /Proxy response \((\d{3})\)/.exec(message)?.[1];
  const said = status ? `Received HTTP code ${status} from proxy after CONNECT` : `Failed to connect to proxy ${code}`;
  return classifyProxyError(proxy, base.hostname, said);
}

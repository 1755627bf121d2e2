import { randomBytes } from 'node:crypto';
import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { redact } from '../../../src/base/redact.ts';
import type { GitCredential, Remote, Resolved } from '../../../src/marketplace/port.ts';
import { GitServer } from '../../cluster/git-server.ts';
import { createAuthority, createServerCert } from '../../cluster/pki.ts';
import type { TestRepository } from '../../support/git.ts';
import { GitHubApi, newAppKey } from '../../support/github-api.ts';
import { ForwardProxy } from '../../support/proxy.ts';
import { failure, NEVER, newRepository, newSource, temporary } from './support.ts';

const privateKey = newAppKey();
const token = () => `ghs_12_${randomBytes(120).toString('base64url')}`;
const INSTALLATIONS = [
  { id: 34, account: 'acme', type: 'Organization' },
  { id: 56, account: 'octocat', type: 'User' },
  { id: 78, account: 'gone', type: 'Organization', suspended: true },
] as const;

/** An enterprise server: its API, and its Git behind the token that the API hands out. */
async function world(options: { lifeMs?: number } = {}) {
  const dir = await temporary();
  const authority = await createAuthority(dir, 'ghe', NEVER);
  const serving = await createServerCert({ dir, name: 'ghe', authority, names: ['IP:127.0.0.1'] }, NEVER);
  const tls = { cert: readFileSync(serving.cert), key: readFileSync(serving.key) };
  const accepted = { username: 'x-access-token', password: token(), bearerToken: token() };
  const installations = [...INSTALLATIONS];
  const api = await GitHubApi.start({
    ...{ tls, appID: '12', privateKey, installations, ...options },
    token: () => accepted.password,
  });
  onTestFinished(() => api[Symbol.asyncDispose]());
  const accessLog = join(dir, 'access.log');
  appendFileSync(accessLog, '');
  const settings = join(dir, 'gitconfig');
  // Repositories of the test belong to whoever runs it.
  appendFileSync(
    settings,
    '[safe]\n\tdirectory = *\n[uploadpack]\n\tallowFilter = true\n\tallowAnySHA1InWant = true\n',
  );
  const { root } = inject('cluster').git;
  const server = new GitServer({ address: '127.0.0.1', root, accessLog, settings, ...accepted });
  onTestFinished(() => server.close());
  const base = await server.listen(0, tls);
  const caCert = readFileSync(authority.cert, 'utf8');
  const credential = (app: object = {}): GitCredential => ({
    caCert,
    githubApp: { appID: '12', installationID: '34', privateKey, baseURL: api.baseURL, ...app },
  });
  const repository: TestRepository = await newRepository();
  const commit = await repository.commit({ 'README.md': 'hello' });
  const remote = (app: object = {}): Remote => ({
    url: `${base}/private/${repository.name}.git`,
    credential: credential(app),
    timeoutMs: 20_000,
  });
  return { api, accepted, remote, repository, commit, caCert };
}

const TOKENS = 'POST /app/installations/34/access_tokens';

describe('a GitHub App', () => {
  test('gets one token for all who wait, for reading alone, and Git accepts it', async () => {
    const { api, remote, commit, accepted } = await world();
    const { source } = await newSource();
    const all = await Promise.all([1, 2, 3].map(() => source.resolve(remote(), {}, NEVER)));
    expect(all.map((one) => one.commit)).toEqual([commit, commit, commit]);
    await using _reader = await source.open(remote(), all[0] as Resolved, NEVER);
    expect(api.requests).toEqual([TOKENS]);
    expect(api.bodies).toEqual([{ permissions: { contents: 'read' } }]);
    expect(redact(`x ${accepted.password} y`)).toBe('x *** y');
  });

  test('is found by organization, or by user', async () => {
    const { api, remote, commit } = await world();
    const { source } = await newSource();
    const by = (owner: string) => source.resolve(remote({ installationID: undefined, owner }), {}, NEVER);
    expect((await by('acme')).commit).toBe(commit);
    expect((await by('octocat')).commit).toBe(commit);
    expect(api.requests).toEqual([
      'GET /orgs/acme/installation',
      TOKENS,
      'GET /orgs/octocat/installation',
      'GET /users/octocat/installation',
      'POST /app/installations/56/access_tokens',
    ]);
  });

  test('renews a token that soon ends, and one that the server does not take', async () => {
    // Below the five minutes that a token must have left.
    const short = await world({ lifeMs: 200_000 });
    const { source } = await newSource();
    await source.resolve(short.remote(), {}, NEVER);
    await source.resolve(short.remote(), {}, NEVER);
    expect(short.api.requests).toEqual([TOKENS, TOKENS]);
    const { api, accepted, remote, commit } = await world();
    await source.resolve(remote(), {}, NEVER);
    const { password } = accepted;
    accepted.password = 'ghs_of_another_day';
    const other = await newSource();
    expect(await failure(other.source.resolve(remote(), {}, NEVER))).toMatchInlineSnapshot(
      `"Waiting AuthenticationFailed: 127.0.0.1:<port> refused the token of the GitHub App: give its installation access to this repository, with the permission Contents: read"`,
    );
    accepted.password = password;
    expect((await other.source.resolve(remote(), {}, NEVER)).commit).toBe(commit);
    expect(api.requests).toEqual([TOKENS, TOKENS, TOKENS]);
  });

  test('goes through the proxy of the source, API and Git alike', async () => {
    const { api, remote, commit } = await world();
    await using proxy = await ForwardProxy.start({ username: 'u', password: 'proxy-pass-2' });
    const { source } = await newSource();
    const own = { address: proxy.address, username: 'u', password: 'proxy-pass-2' };
    expect((await source.resolve({ ...remote(), proxy: own }, {}, NEVER)).commit).toBe(commit);
    const { url } = remote();
    expect(proxy.requests).toEqual([new URL(api.baseURL), new URL(url)].map(({ host }) => `CONNECT ${host}`));
    const wrong = { ...own, password: 'proxy-pass-3' };
    const refused = source.resolve({ ...remote({ installationID: '56' }), proxy: wrong }, {}, NEVER);
    expect(await failure(refused)).toMatchInlineSnapshot(
      `"Waiting ProxyAuthFailed: the proxy 127.0.0.1:<port> asks for other credentials: correct username and password in the Secret of proxySecretRef"`,
    );
  });
});

describe('every refusal has its own reason', () => {
  test('of the API', async () => {
    const { api, remote } = await world();
    const { source } = await newSource();
    const attempt = (app: object = {}, timeoutMs = 20_000) =>
      failure(source.resolve({ ...remote(app), timeoutMs }, {}, NEVER));
    const answers = (status: number, headers: Record<string, string> = {}, body = '') => {
      api.faults.push({ status, headers, body });
      return attempt();
    };
    expect(await attempt({ privateKey: newAppKey() })).toMatchInlineSnapshot(
      `"Waiting GitHubAppKeyRefused: 127.0.0.1:<port> does not accept the key of GitHub App 12 ("A JSON web token could not be decoded"): correct githubAppID and githubAppPrivateKey in the Secret, and check that the operator's clock is right"`,
    );
    expect(await attempt({ appID: '13' })).toMatchInlineSnapshot(
      `"Waiting GitHubAppKeyRefused: 127.0.0.1:<port> does not accept the key of GitHub App 13 ("Integration not found"): correct githubAppID and githubAppPrivateKey in the Secret, and check that the operator's clock is right"`,
    );
    expect(await attempt({ installationID: '99' })).toMatchInlineSnapshot(
      `"Waiting GitHubAppNotInstalled: 127.0.0.1:<port> knows no such installation of GitHub App 12: install the app on the account of the repository, or correct githubAppInstallationID or githubAppInstallationOwner in the Secret"`,
    );
    expect(await attempt({ installationID: undefined, owner: 'nobody' })).toMatchInlineSnapshot(
      `"Waiting GitHubAppNotInstalled: 127.0.0.1:<port> knows no such installation of GitHub App 12: install the app on the account of the repository, or correct githubAppInstallationID or githubAppInstallationOwner in the Secret"`,
    );
    expect(await attempt({ installationID: '78' })).toMatchInlineSnapshot(
      `"Waiting GitHubAppForbidden: 127.0.0.1:<port> gives GitHub App 12 no token ("This installation has been suspended"): the installation must not be suspended and needs the permission Contents: read"`,
    );
    expect(await answers(422, {}, '{"message":"The permissions requested are not granted"}')).toMatchInlineSnapshot(
      `"Waiting GitHubAppForbidden: 127.0.0.1:<port> gives GitHub App 12 no token ("The permissions requested are not granted"): the installation must not be suspended and needs the permission Contents: read"`,
    );
    expect(await answers(429, { 'retry-after': '7' })).toMatchInlineSnapshot(
      `"Waiting GitRateLimited: 127.0.0.1:<port> asks to slow down (HTTP 429): the operator waits as long as it was told; raise spec.interval if this returns"`,
    );
    expect(await answers(403, {}, '{"message":"You have exceeded a secondary rate limit"}')).toMatchInlineSnapshot(
      `"Waiting GitRateLimited: 127.0.0.1:<port> asks to slow down (HTTP 403): the operator waits as long as it was told; raise spec.interval if this returns"`,
    );
    expect(await answers(302, { location: 'https://evil.example/' })).toMatchInlineSnapshot(
      `"Waiting RedirectRefused: 127.0.0.1:<port> redirects to another address: write the final address of the API into githubAppBaseURL of the Secret; redirects are not followed because credentials would go along"`,
    );
    expect(await answers(502)).toMatchInlineSnapshot(
      `"Retry GitUnreachable: 127.0.0.1:<port> answers with server error 502: the operator tries again by itself; if it stays, look at the server"`,
    );
    expect(await answers(201, {}, '<html>')).toMatchInlineSnapshot(
      `"Retry GitOperationFailed: the answer of 127.0.0.1:<port> to POST /app/installations/34/access_tokens is no JSON object: check githubAppBaseURL in the Secret; the operator tries again by itself"`,
    );
    expect(await answers(201, {}, '{"token":"a b","expires_at":"soon"}')).toMatchInlineSnapshot(
      `"Retry GitOperationFailed: the answer of 127.0.0.1:<port> to POST /app/installations/34/access_tokens has no usable token: check githubAppBaseURL in the Secret; the operator tries again by itself"`,
    );
    expect(await answers(201, {}, 'x'.repeat(70_000))).toMatchInlineSnapshot(
      `"Retry GitOperationFailed: the answer of 127.0.0.1:<port> to POST /app/installations/34/access_tokens is larger than 65536 bytes: check githubAppBaseURL in the Secret; the operator tries again by itself"`,
    );
    expect(await attempt({ baseURL: 'https://127.0.0.1:1/api/v3' })).toMatchInlineSnapshot(
      `"Retry GitUnreachable: no connection to 127.0.0.1:<port> (ECONNREFUSED): check githubAppBaseURL in the Secret, the server, and the network policies of the operator's namespace"`,
    );
    api.faults.push('silent');
    expect(await attempt({}, 1_000)).toMatchInlineSnapshot(
      `"Retry GitTimeout: 127.0.0.1:<port> did not hand out a token for GitHub App 12 within 1 s: look at the server, or raise spec.timeout"`,
    );
  });

  test('of a certificate that is not trusted', async () => {
    const { remote } = await world();
    const { source } = await newSource();
    const { githubApp } = remote().credential ?? {};
    expect(await failure(source.resolve({ ...remote(), credential: { githubApp } }, {}, NEVER))).toMatchInlineSnapshot(
      `"Waiting TLSVerificationFailed: the certificate of 127.0.0.1:<port> is not trusted (UNABLE_TO_VERIFY_LEAF_SIGNATURE): put the issuing CA into ca.crt of the Secret, or renew the certificate"`,
    );
  });

  test('and nothing is asked for in the name of a Secret that is bound to another host', async () => {
    const { api, remote } = await world();
    const { source } = await newSource();
    const bound = { ...remote(), credential: { ...remote().credential, hosts: ['github.com'] } };
    expect(await failure(source.resolve(bound, {}, NEVER))).toContain('Waiting SecretHostNotAllowed');
    expect(await failure(source.resolve({ ...remote(), url: 'https://localhost/x' }, {}, NEVER))).toContain(
      'Waiting SecretHostNotAllowed',
    );
    expect(api.requests).toEqual([]);
  });
});

import { describe, expect, inject, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { ForwardProxy } from '../../support/proxy.ts';
import { failure, NEVER, newRepository, newSource, processesWith, remoteAt } from './support.ts';

const git = () => inject('cluster').git;
const PASSWORD = 'canary-proxy-pass/word';
const credentials = { username: 'proxy-user', password: PASSWORD };

async function seeded() {
  const repository = await newRepository();
  return { repository, commit: await repository.commit({ 'README.md': 'hello' }) };
}

describe('a proxy', () => {
  test('of a Secret carries https in a tunnel and http as it is, with its credentials', async () => {
    const { repository, commit } = await seeded();
    await using proxy = await ForwardProxy.start(credentials);
    const own = { address: proxy.address, ...credentials };
    const { source } = await newSource();
    const secure = { ...remoteAt(git().httpsUrl, repository, { caCert: git().caCert }), proxy: own };
    const resolved = await source.resolve(secure, {}, NEVER);
    expect(resolved.commit).toBe(commit);
    await using reader = await source.open(secure, resolved, NEVER);
    expect((await reader.tree('', NEVER))?.entries.map(({ name }) => name)).toEqual(['README.md']);
    const { host } = new URL(git().httpsUrl);
    expect(new Set(proxy.requests)).toEqual(new Set([`CONNECT ${host}`]));
    const plain = { ...remoteAt(git().privateUrl, repository, git()), proxy: own };
    expect((await source.resolve(plain, {}, NEVER)).commit).toBe(commit);
    expect(proxy.requests.at(-1)).toContain(`${git().privateUrl}/${repository.name}.git`);
  });

  test('of the process counts where no Secret names one, unless NO_PROXY takes the host out', async () => {
    const { repository, commit } = await seeded();
    await using proxy = await ForwardProxy.start(credentials);
    const https = proxy.address.replace('://', `://proxy-user:${encodeURIComponent(PASSWORD)}@`);
    const remote = remoteAt(git().httpsUrl, repository, { caCert: git().caCert });
    const through = await newSource({}, { proxies: { https } });
    expect((await through.source.resolve(remote, {}, NEVER)).commit).toBe(commit);
    expect(proxy.requests).toHaveLength(1);
    const around = await newSource({}, { proxies: { https, noProxy: '127.0.0.0/8' } });
    expect((await around.source.resolve(remote, {}, NEVER)).commit).toBe(commit);
    expect(proxy.requests).toHaveLength(1);
  });

  test('that refuses, or is not there, is told apart from the Git server', async () => {
    const { repository } = await seeded();
    await using asking = await ForwardProxy.start(credentials);
    await using strict = await ForwardProxy.start({ answer: 403 });
    await using lame = await ForwardProxy.start({ answer: 502 });
    const { source } = await newSource();
    const attempt = (base: string, own: { address: string; username?: string; password?: string }) =>
      failure(source.resolve({ ...remoteAt(base, repository, { caCert: git().caCert }), proxy: own }, {}, NEVER));
    const wrong = { address: asking.address, username: 'proxy-user', password: 'canary-wrong' };
    expect(await attempt(git().httpsUrl, wrong)).toMatchInlineSnapshot(
      `"Waiting ProxyAuthFailed: the proxy 127.0.0.1:<port> asks for other credentials: correct username and password in the Secret of proxySecretRef"`,
    );
    expect(await attempt(git().httpUrl, wrong)).toMatchInlineSnapshot(
      `"Waiting ProxyAuthFailed: the proxy 127.0.0.1:<port> asks for other credentials: correct username and password in the Secret of proxySecretRef"`,
    );
    expect(await attempt(git().httpsUrl, { address: strict.address })).toMatchInlineSnapshot(
      `"Waiting ProxyRefused: the proxy 127.0.0.1:<port> does not let connections to 127.0.0.1:<port> through (it answers 403): allow the host there, or use another proxy"`,
    );
    expect(await attempt(git().httpsUrl, { address: lame.address })).toMatchInlineSnapshot(
      `"Retry ProxyUnreachable: the proxy 127.0.0.1:<port> did not reach 127.0.0.1:<port> (it answers 502): the operator tries again by itself; if it stays, look at the proxy and at the host in the URL"`,
    );
    expect(await attempt(git().httpsUrl, { address: 'http://127.0.0.1:1' })).toMatchInlineSnapshot(
      `"Retry ProxyUnreachable: no connection to the proxy 127.0.0.1:<port>: check the address in the Secret of proxySecretRef, the proxy, and the network policies of the operator's namespace"`,
    );
    expect(await attempt(git().httpsUrl, { address: 'http://no-such-proxy.invalid:3128' })).toMatchInlineSnapshot(
      `"Retry ProxyUnreachable: no connection to the proxy no-such-proxy.invalid:3128: check the address in the Secret of proxySecretRef, the proxy, and the network policies of the operator's namespace"`,
    );
    expect(await attempt(git().sshUrl, { address: strict.address })).toMatchInlineSnapshot(
      `"Stalled InvalidSpec: an ssh URL goes through no proxy: use the https URL of the repository, or remove proxySecretRef"`,
    );
  });

  test('keeps its password out of every command line', async () => {
    await using proxy = await ForwardProxy.start(credentials);
    const { source } = await newSource();
    const url = new URL(`/silent/proxied-${process.pid}.git`, git().httpUrl).href;
    const work = failure(
      source.resolve({ url, timeoutMs: 1_500, proxy: { address: proxy.address, ...credentials } }, {}, NEVER),
    );
    await eventually(() => processesWith(`proxied-${process.pid}`).length > 1, { what: 'start of git' });
    for (const form of [PASSWORD, encodeURIComponent(PASSWORD), btoa(`proxy-user:${PASSWORD}`)]) {
      expect(processesWith(form)).toEqual([]);
    }
    expect(await work).toContain('Retry GitTimeout');
  });
});

test('authorities of the process count for https where a Secret brings none', async () => {
  const { repository, commit } = await seeded();
  const remote = remoteAt(git().httpsUrl, repository);
  const { source } = await newSource({}, { authorities: git().caCert });
  expect((await source.resolve(remote, {}, NEVER)).commit).toBe(commit);
  const without = await newSource();
  expect(await failure(without.source.resolve(remote, {}, NEVER))).toContain('Waiting TLSVerificationFailed');
});

import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import {
  failure,
  filesBelow,
  gitProcesses,
  NEVER,
  newRepository,
  newSource,
  processesWith,
  remoteAt,
} from './support.ts';

const git = () => inject('cluster').git;
const areaUrl = (area: string) => new URL(`/${area}`, git().httpUrl).href;

async function seeded() {
  const repository = await newRepository();
  const commit = await repository.commit({ 'README.md': 'hello' });
  return { repository, commit };
}

describe('credentials over http and https', () => {
  test('basic and bearer are accepted, with a newline that an editor left behind', async () => {
    const { repository, commit } = await seeded();
    const { source } = await newSource();
    const { username, password, bearerToken, privateUrl } = git();
    for (const credential of [{ username, password }, { username, password: `${password}\n` }, { bearerToken }]) {
      const resolved = await source.resolve(remoteAt(privateUrl, repository, credential), {}, NEVER);
      expect(resolved.commit).toBe(commit);
    }
  });

  test('wrong, missing and half credentials are told apart', async () => {
    const { repository } = await seeded();
    const { source } = await newSource();
    const attempt = (credential?: object) =>
      failure(source.resolve(remoteAt(git().privateUrl, repository, credential), {}, NEVER));
    expect(await attempt()).toMatchInlineSnapshot(
      `"Waiting AuthenticationFailed: 127.0.0.1:<port> asks for credentials: name a Secret with username/password or bearerToken in spec.secretRef (a repository that does not exist answers the same on many servers)"`,
    );
    expect(await attempt({ username: 'tester', password: 'wrong-canary-1' })).toMatchInlineSnapshot(
      `"Waiting AuthenticationFailed: 127.0.0.1:<port> refused the credentials: correct username/password or bearerToken in the Secret of secretRef, and check that they may read this repository"`,
    );
    expect(await attempt({ bearerToken: 'wrong-canary-2' })).toMatchInlineSnapshot(
      `"Waiting AuthenticationFailed: 127.0.0.1:<port> refused the credentials: correct username/password or bearerToken in the Secret of secretRef, and check that they may read this repository"`,
    );
    expect(await attempt({ username: 'tester' })).toMatchInlineSnapshot(
      `"Waiting SecretInvalid: the Secret has username but no password: add the key password"`,
    );
  });

  test('a Secret bound to hosts goes to no other', async () => {
    const { repository, commit } = await seeded();
    const { source } = await newSource();
    const { username, password, privateUrl } = git();
    const bound = (hosts: string[]) => remoteAt(privateUrl, repository, { username, password, hosts });
    expect((await source.resolve(bound(['127.0.0.1']), {}, NEVER)).commit).toBe(commit);
    expect(await failure(source.resolve(bound(['github.com']), {}, NEVER))).toMatchInlineSnapshot(
      `"Waiting SecretHostNotAllowed: the Secret may not be sent to 127.0.0.1: add the host to its annotation skills.tfrobot.io/hosts, or use another Secret"`,
    );
    expect(await failure(source.open(bound([]), { commit, revision: '', fetchRef: commit }, NEVER))).toContain(
      'SecretHostNotAllowed',
    );
  });

  test('the CA of the Secret decides over https', async () => {
    const { repository, commit } = await seeded();
    const { source } = await newSource();
    const at = (caCert?: string) => remoteAt(git().httpsUrl, repository, caCert === undefined ? undefined : { caCert });
    expect((await source.resolve(at(git().caCert), {}, NEVER)).commit).toBe(commit);
    expect(await failure(source.resolve(at(), {}, NEVER))).toMatchInlineSnapshot(
      `"Waiting TLSVerificationFailed: the certificate of 127.0.0.1:<port> is not trusted: put the issuing CA into ca.crt of the Secret, or renew the certificate (its host name and dates must fit)"`,
    );
    expect(await failure(source.resolve(at('no certificate'), {}, NEVER))).toMatchInlineSnapshot(
      `"Waiting SecretInvalid: ca.crt in the Secret holds no PEM certificate: store the CA certificate itself"`,
    );
  });
});

describe('ssh', () => {
  const credential = () => ({ identity: git().sshIdentity, knownHosts: git().sshKnownHosts });

  test('reads with the key and leaves no file of it behind', async () => {
    const { repository, commit } = await seeded();
    const { source, dir } = await newSource();
    const remote = remoteAt(git().sshUrl, repository, credential());
    const resolved = await source.resolve(remote, {}, NEVER);
    expect(resolved.commit).toBe(commit);
    await using reader = await source.open(remote, resolved, NEVER);
    expect((await reader.tree('', NEVER))?.entries.map(({ name }) => name)).toEqual(['README.md']);
    expect(filesBelow(dir).filter((file) => /identity|known_hosts/.test(file))).toEqual([]);
  });

  test('a changed host key is refused by name and recovers with the right one', async () => {
    const { repository, commit } = await seeded();
    const { source } = await newSource();
    const good = credential();
    const [host] = good.knownHosts.trim().split(' ');
    const other = 'AAAAC3NzaC1lZDI1NTE5AAAAIGbWjBDGQJgtqQpGxzOXHCMcAVE0ZGX5G7rP0B1Y8yyy';
    const resolve = (knownHosts: string) =>
      source.resolve(remoteAt(git().sshUrl, repository, { ...good, knownHosts }), {}, NEVER);
    expect(await failure(resolve(`${host} ssh-ed25519 ${other}\n`))).toMatchInlineSnapshot(
      `"Waiting HostKeyMismatch: 127.0.0.1:<port> shows another host key than known_hosts lists (received <fingerprint>): compare it with the one the provider publishes, then put the output of "ssh-keyscan -p <port> 127.0.0.1" into known_hosts of the Secret"`,
    );
    expect(await failure(resolve(`elsewhere.example ssh-ed25519 ${other}\n`))).toMatchInlineSnapshot(
      `"Waiting HostKeyUnknown: known_hosts has no usable key for 127.0.0.1:<port>: put the output of "ssh-keyscan -p <port> 127.0.0.1" into known_hosts of the Secret after comparing it with the one the provider publishes"`,
    );
    expect((await resolve(good.knownHosts)).commit).toBe(commit);
  });

  test('missing parts of the Secret and a refused key are told apart', async () => {
    const { repository } = await seeded();
    const { source } = await newSource();
    const resolve = (secret?: object) => failure(source.resolve(remoteAt(git().sshUrl, repository, secret), {}, NEVER));
    expect(await resolve()).toMatchInlineSnapshot(
      `"Waiting SecretInvalid: an ssh URL needs the key identity (a private key) in the Secret of spec.secretRef: add it"`,
    );
    expect(await resolve({ identity: git().sshIdentity })).toMatchInlineSnapshot(
      `"Waiting SecretInvalid: an ssh URL needs the key known_hosts in the Secret: add the output of "ssh-keyscan -p <port> 127.0.0.1" after comparing it with the key the provider publishes"`,
    );
    expect(await resolve({ ...credential(), identity: 'ssh-ed25519 AAAA public' })).toMatchInlineSnapshot(
      `"Waiting SecretInvalid: identity in the Secret is no private key in PEM or OpenSSH form: store the file that ssh-keygen wrote, not the .pub file"`,
    );
    const missing = remoteAt(git().sshUrl, { name: 'no-such' }, credential());
    expect(await failure(source.resolve(missing, {}, NEVER))).toMatchInlineSnapshot(
      `"Waiting RepositoryNotFound: 127.0.0.1:<port> has no such repository, or hides it from these credentials: correct the URL, or give the account read access"`,
    );
  });
});

describe('servers that do not behave', () => {
  const at = (url: string, timeoutMs = 20_000) => ({ url, timeoutMs });

  test('each answer has its own reason', async () => {
    const { source } = await newSource();
    const resolve = (url: string) => failure(source.resolve(at(url), {}, NEVER));
    expect(await resolve(areaUrl('status/403/x.git'))).toMatchInlineSnapshot(
      `"Waiting AuthenticationFailed: 127.0.0.1:<port> asks for credentials: name a Secret with username/password or bearerToken in spec.secretRef (a repository that does not exist answers the same on many servers)"`,
    );
    expect(await resolve(areaUrl('status/404/x.git'))).toMatchInlineSnapshot(
      `"Waiting RepositoryNotFound: 127.0.0.1:<port> has no such repository, or hides it from absent credentials: correct the URL, or name a Secret in spec.secretRef"`,
    );
    expect(await resolve(areaUrl('status/429/x.git'))).toMatchInlineSnapshot(
      `"Waiting GitRateLimited: 127.0.0.1:<port> asks to slow down: the operator waits a minute, and longer each time; raise spec.interval if this returns"`,
    );
    expect(await resolve(areaUrl('status/503/x.git'))).toMatchInlineSnapshot(
      `"Retry GitUnreachable: 127.0.0.1:<port> answers with server error 503: the operator tries again by itself; if it stays, look at the server"`,
    );
    expect(await resolve(areaUrl('redirect/x.git'))).toMatchInlineSnapshot(
      `"Waiting RedirectRefused: 127.0.0.1:<port> redirects to another address: write the final address into the URL; redirects are not followed because credentials would go along"`,
    );
    expect(await resolve('http://127.0.0.1:1/x.git')).toMatchInlineSnapshot(
      `"Retry GitUnreachable: no connection to 127.0.0.1:<port>: check host and port of the URL, the server, and the network policies of the operator's namespace"`,
    );
    expect(await resolve('https://no-such-host.invalid/x.git')).toMatchInlineSnapshot(
      `"Retry GitUnreachable: the name no-such-host.invalid does not resolve: correct the host in the URL, or check the DNS of the cluster"`,
    );
  });

  test('a silent server ends at the deadline with no process left', async () => {
    const { source } = await newSource();
    const url = areaUrl(`silent/quiet-${process.pid}.git`);
    const began = performance.now();
    expect(await failure(source.resolve(at(url, 1_000), {}, NEVER))).toMatchInlineSnapshot(
      `"Retry GitTimeout: 127.0.0.1:<port> did not finish within 1 s: raise spec.timeout, or look at the server"`,
    );
    expect(performance.now() - began).toBeLessThan(5_000);
    expect(processesWith(`quiet-${process.pid}`)).toEqual([]);
  });

  test('a silent ssh server ends at the deadline with no process left', async () => {
    const server = createServer(() => undefined).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await new Promise((done) => server.once('listening', done));
    const port = (server.address() as AddressInfo).port;
    const { source, dir } = await newSource();
    const credential = { identity: git().sshIdentity, knownHosts: git().sshKnownHosts };
    const remote = { url: `ssh://git@127.0.0.1:${port}/x.git`, credential, timeoutMs: 1_000 };
    expect(await failure(source.resolve(remote, {}, NEVER))).toContain('Retry GitTimeout');
    await eventually(() => processesWith(dir).length === 0, { what: 'end of ssh' });
    expect(filesBelow(dir)).toEqual([]);
  });

  test('an abort ends the wait and the processes at once', async () => {
    const { source } = await newSource();
    const controller = new AbortController();
    const url = areaUrl(`silent/abort-${process.pid}.git`);
    const work = source.resolve(at(url), {}, controller.signal);
    await eventually(() => processesWith(`abort-${process.pid}`).length > 0, { what: 'start of git' });
    const reason = new Error('the caller left');
    controller.abort(reason);
    await expect(work).rejects.toBe(reason);
    await eventually(() => processesWith(`abort-${process.pid}`).length === 0, { what: 'end of git' });
  });
});

test('a killed git is a failure, never an empty repository', async () => {
  const { source } = await newSource();
  const url = areaUrl(`silent/killed-${process.pid}.git`);
  const work = failure(source.resolve({ url, timeoutMs: 20_000 }, {}, NEVER));
  const pids = await eventually(
    () => {
      const found = gitProcesses('GIT_ALLOW_PROTOCOL=https:http:ssh', `killed-${process.pid}`);
      return found.length > 1 && found;
    },
    { what: 'start of git and its helper' },
  );
  for (const pid of pids) process.kill(pid, 'SIGKILL');
  expect(await work).toMatchInlineSnapshot(
    `"Retry GitOperationFailed: git was killed before it finished: the operator tries again by itself; if it stays, raise the operator's memory limit"`,
  );
});

describe('secrets', () => {
  test('stand in no command line and in no message', async () => {
    const canary = 'canary-s3cr3t-7f3a';
    const { source } = await newSource();
    const url = areaUrl(`silent/secret-${process.pid}.git`);
    const forms = [canary, Buffer.from(`user:${canary}`).toString('base64')];
    for (const credential of [{ username: 'user', password: canary }, { bearerToken: canary }]) {
      const work = failure(source.resolve({ url, credential, timeoutMs: 1_500 }, {}, NEVER));
      await eventually(() => processesWith(`secret-${process.pid}`).length > 1, { what: 'start of git' });
      for (const form of forms) expect(processesWith(form)).toEqual([]);
      const message = await work;
      for (const form of forms) expect(message).not.toContain(form);
    }
  });
});

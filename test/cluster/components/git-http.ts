import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { request } from 'undici';
import type { ClusterInfo } from '../../support/cluster-info.ts';
import type { Component, Run } from '../component.ts';
import { GitServer } from '../git-server.ts';
import { ensurePrograms } from '../packages.ts';
import { createAuthority, createServerCert } from '../pki.ts';

const NAME = 'git-http';

// What the large Git hosts allow: partial clones, and any commit by its id.
const SERVER_SETTINGS = `[uploadpack]
\tallowFilter = true
\tallowAnySHA1InWant = true
[http]
\treceivepack = false
[safe]
\tdirectory = *
`;

const servers = new WeakMap<Run, GitServer>();

/** Path of the Git configuration that the servers of this run use; no other configuration is read. */
export const gitSettings = (run: Run): string => run.path('git', 'server.gitconfig');

/** The facts about Git, shared by the HTTP and the ssh server; made on first use. */
export function gitFacts(run: Run): ClusterInfo['git'] {
  run.facts.git ??= {
    root: run.path('git', 'repositories'),
    httpUrl: '',
    privateUrl: '',
    httpsUrl: '',
    caCert: '',
    username: 'tester',
    password: randomBytes(12).toString('hex'),
    bearerToken: randomBytes(16).toString('hex'),
    sshUrl: '',
    sshIdentity: '',
    sshKnownHosts: '',
    accessLog: run.path('git', 'access.log'),
  };
  mkdirSync(run.facts.git.root, { recursive: true });
  writeFileSync(gitSettings(run), SERVER_SETTINGS);
  return run.facts.git;
}

/** Git over http and https, through Git's own `http-backend`. */
export const gitHttp: Component = {
  name: NAME,
  needs: ['node'],
  ensureInstalled: (run, signal) =>
    ensurePrograms(
      [
        { probe: ['git', '--version'], debianPackage: 'git' },
        { probe: ['openssl', 'version'], debianPackage: 'openssl' },
      ],
      run.host.say,
      signal,
    ),
  start: async (run, signal) => {
    const facts = gitFacts(run);
    const dir = run.path('pki');
    const authority = await createAuthority(dir, 'git', signal);
    const names = [`IP:${run.address}`, 'DNS:localhost'];
    const serving = await createServerCert({ dir, name: NAME, authority, names }, signal);
    writeFileSync(facts.accessLog, '');
    const server = new GitServer({
      address: run.address,
      root: facts.root,
      accessLog: facts.accessLog,
      settings: gitSettings(run),
      username: facts.username,
      password: facts.password,
      bearerToken: facts.bearerToken,
    });
    servers.set(run, server);
    const http = await server.listen(await run.ports.take());
    const tls = { cert: readFileSync(serving.cert), key: readFileSync(serving.key) };
    const https = await server.listen(await run.ports.take(), tls);
    facts.httpUrl = `${http}/pub`;
    facts.privateUrl = `${http}/private`;
    facts.httpsUrl = `${https}/pub`;
    facts.caCert = readFileSync(join(dir, 'git-ca.crt'), 'utf8');
  },
  ready: async (run, signal) => {
    const { statusCode, body } = await request(new URL('/status/204/ready', run.facts.git?.httpUrl), { signal });
    await body.dump();
    return statusCode === 204;
  },
  stop: async (run) => {
    await servers.get(run)?.close();
  },
};

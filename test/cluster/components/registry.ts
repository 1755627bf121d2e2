import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { request } from 'undici';
import { stringify } from 'yaml';
import type { Component, Run } from '../component.ts';
import { execOk } from '../exec.ts';
import { ensurePrograms } from '../packages.ts';

const BASE = 'base-registry';
const PUSH = 'registry';
const REALM = 'test';

const basic = (username: string, password: string): string => Buffer.from(`${username}:${password}`).toString('base64');

/** Text of a `.dockerconfigjson` for one registry. */
function dockerConfig(address: string, username: string, password: string): string {
  return JSON.stringify({ auths: { [address]: { username, password, auth: basic(username, password) } } });
}

function serve(run: Run, name: string, address: string, auth: object): void {
  const config = run.path(name, 'config.yml');
  mkdirSync(run.path(name, 'data'), { recursive: true });
  writeFileSync(
    config,
    stringify({
      version: '0.1',
      log: { level: 'warn', accesslog: { disabled: true } },
      storage: { filesystem: { rootdirectory: run.path(name, 'data') }, delete: { enabled: true } },
      http: { addr: address, secret: randomBytes(16).toString('hex') },
      ...auth,
    }),
    { mode: 0o600 },
  );
  run.processes.start({ name, file: 'docker-registry', args: ['serve', config] });
}

async function answers(address: string | undefined, expected: number, signal: AbortSignal): Promise<boolean> {
  const { statusCode, body } = await request(`http://${address}/v2/`, { signal });
  await body.dump();
  return statusCode === expected;
}

const ensureInstalled = (run: Run, signal: AbortSignal): Promise<void> =>
  ensurePrograms(
    [
      { probe: ['docker-registry', '--version'], debianPackage: 'docker-registry' },
      { probe: ['htpasswd', '-?'], debianPackage: 'apache2-utils' },
    ],
    run.host.say,
    signal,
  );

/** A registry for base images that asks for no credentials. */
export const baseRegistry: Component = {
  name: BASE,
  needs: ['node'],
  ensureInstalled,
  start: async (run) => {
    const address = `${run.address}:${await run.ports.take()}`;
    run.node.baseRegistry = { address, insecure: true };
    serve(run, BASE, address, {});
  },
  ready: async (run, signal) => await answers(run.node.baseRegistry?.address, 200, signal),
  stop: (run) => run.processes.stop(BASE),
};

/** A registry for built images that does nothing without its credential. */
export const registry: Component = {
  name: PUSH,
  needs: ['node'],
  ensureInstalled,
  start: async (run, signal) => {
    const address = `${run.address}:${await run.ports.take()}`;
    const username = 'pusher';
    const password = randomBytes(16).toString('hex');
    const file = run.path('pki', 'htpasswd');
    // The lowest cost: the password is random, and every request pays for the comparison.
    const line = await execOk('htpasswd', ['-n', '-i', '-B', '-C', '4', username], { signal, input: password });
    writeFileSync(file, line.trim(), { mode: 0o600 });
    run.node.registry = {
      address,
      insecure: true,
      username,
      password,
      pushSecret: dockerConfig(address, username, password),
    };
    serve(run, PUSH, address, { auth: { htpasswd: { realm: REALM, path: file } } });
  },
  ready: async (run, signal) => await answers(run.node.registry?.address, 401, signal),
  stop: (run) => run.processes.stop(PUSH),
};

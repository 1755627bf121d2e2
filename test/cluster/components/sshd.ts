import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import type { Component, Run } from '../component.ts';
import { exec, execOk } from '../exec.ts';
import { ensurePrograms } from '../packages.ts';
import { gitFacts, gitSettings } from './git-http.ts';

const NAME = 'sshd';
/** sshd insists on being called by its full path. */
const SSHD = '/usr/sbin/sshd';
/** Where Debian's sshd of root wants an empty directory. */
const PRIVILEGE_DIR = '/run/sshd';

const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** The only command that the key may run: reading repositories. */
function readOnlyCommand(run: Run): string {
  return `#!/bin/sh
# Every login of the test key ends here, whatever the client asked for.
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=${quote(gitSettings(run))}
case "$SSH_ORIGINAL_COMMAND" in
  "git-upload-pack "*) exec git shell -c "$SSH_ORIGINAL_COMMAND" ;;
esac
echo "only git-upload-pack is served" >&2
exit 128
`;
}

function serverSettings(run: Run, port: number): string {
  return `Port ${port}
ListenAddress ${run.address}
HostKey ${run.path('ssh', 'host_key')}
AuthorizedKeysFile ${run.path('ssh', 'authorized_keys')}
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
AcceptEnv GIT_PROTOCOL
AllowTcpForwarding no
X11Forwarding no
PrintMotd no
MaxStartups 500
LogLevel VERBOSE
`;
}

async function newKey(path: string, signal: AbortSignal): Promise<string> {
  await execOk('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'test', '-f', path], { signal });
  const [type, key] = readFileSync(`${path}.pub`, 'utf8').split(' ');
  return `${type} ${key}`;
}

async function writeFiles(run: Run, port: number, signal: AbortSignal): Promise<void> {
  const dir = run.path('ssh');
  mkdirSync(dir, { mode: 0o700 });
  const facts = gitFacts(run);
  const hostKey = await newKey(join(dir, 'host_key'), signal);
  const clientKey = await newKey(join(dir, 'identity'), signal);
  const command = join(dir, 'read-only');
  writeFileSync(command, readOnlyCommand(run), { mode: 0o755 });
  writeFileSync(join(dir, 'authorized_keys'), `restrict,command="${command}" ${clientKey}\n`, { mode: 0o600 });
  facts.sshIdentity = readFileSync(join(dir, 'identity'), 'utf8');
  facts.sshKnownHosts = `[${run.address}]:${port} ${hostKey}\n`;
  writeFileSync(join(dir, 'known_hosts'), facts.sshKnownHosts);
  facts.sshUrl = `ssh://${userInfo().username}@${run.address}:${port}${facts.root}`;
  writeFileSync(join(dir, 'sshd_config'), serverSettings(run, port));
}

/** Git over ssh: a real sshd that lets one key read the repositories. */
export const sshd: Component = {
  name: NAME,
  needs: ['git-http'],
  ensureInstalled: (run, signal) =>
    ensurePrograms(
      [
        { probe: [SSHD, '-V'], debianPackage: 'openssh-server' },
        { probe: ['ssh', '-V'], debianPackage: 'openssh-client' },
      ],
      run.host.say,
      signal,
    ),
  start: async (run, signal) => {
    if (process.getuid?.() === 0) mkdirSync(PRIVILEGE_DIR, { recursive: true, mode: 0o755 });
    const port = await run.ports.take();
    await writeFiles(run, port, signal);
    run.processes.start({ name: NAME, file: SSHD, args: ['-D', '-e', '-f', run.path('ssh', 'sshd_config')] });
  },
  // A whole login: it fails on a locked account or a wrong mode, which an open port would not show.
  ready: async (run, signal) => {
    const { sshUrl } = gitFacts(run);
    const { port, username } = new URL(sshUrl);
    const files = ['-i', run.path('ssh', 'identity'), `-oUserKnownHostsFile=${run.path('ssh', 'known_hosts')}`];
    const options = ['-F', 'none', '-oBatchMode=yes', '-oIdentitiesOnly=yes', '-oConnectTimeout=5', '-p', port];
    const { stderr } = await exec('ssh', [...options, ...files, `${username}@${run.address}`, 'true'], { signal });
    if (stderr.includes('only git-upload-pack is served')) return true;
    throw new Error(stderr.trim());
  },
  stop: (run) => run.processes.stop(NAME),
};

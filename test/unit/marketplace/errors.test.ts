import { expect, test } from 'vitest';
import { classifyGitError } from '../../../src/marketplace/errors.ts';
import { parseRemote } from '../../../src/marketplace/url.ts';

const https = parseRemote('git', { git: { url: 'https://git.example/a/b.git' } });
const ssh = parseRemote('git', { git: { url: 'ssh://git@git.example:2222/a/b.git' } });

test.each([
  [https, "fatal: Authentication failed for 'https://git.example/a/b.git/'", 'Waiting AuthenticationFailed'],
  [
    https,
    "fatal: could not read Username for 'https://git.example': terminal prompts disabled",
    'Waiting AuthenticationFailed',
  ],
  [
    https,
    "fatal: could not read Password for 'https://x@git.example': terminal prompts disabled",
    'Waiting AuthenticationFailed',
  ],
  [
    https,
    "fatal: unable to access 'https://git.example/a/b.git/': The requested URL returned error: 403",
    'Waiting AuthenticationFailed',
  ],
  [https, 'remote: HTTP Basic: Access denied\nfatal: Authentication failed for x', 'Waiting AuthenticationFailed'],
  [
    https,
    'remote: Invalid username or token. Password authentication is not supported.',
    'Waiting AuthenticationFailed',
  ],
  [https, 'error: RPC failed; HTTP 403 curl 22 The requested URL returned error: 403', 'Waiting AuthenticationFailed'],
  [
    https,
    "remote: Repository not found.\nfatal: repository 'https://git.example/a/b.git/' not found",
    'Waiting RepositoryNotFound',
  ],
  [
    https,
    "fatal: unable to access 'https://git.example/x/': The requested URL returned error: 404",
    'Waiting RepositoryNotFound',
  ],
  [
    https,
    "fatal: unable to access 'https://git.example/x/': The requested URL returned error: 429",
    'Waiting GitRateLimited',
  ],
  [
    https,
    "fatal: unable to access 'https://git.example/x/': The requested URL returned error: 503",
    'Retry GitUnreachable',
  ],
  [https, 'error: RPC failed; HTTP 502 curl 22 The requested URL returned error: 502', 'Retry GitUnreachable'],
  [
    https,
    "fatal: unable to access 'https://git.example/x/': The requested URL returned error: 302",
    'Waiting RedirectRefused',
  ],
  [
    https,
    'fatal: unable to update url base from redirection:\n  asked for: a\n   redirect: b',
    'Waiting RedirectRefused',
  ],
  [
    https,
    "fatal: unable to access 'https://git.example/': Could not resolve host: git.example",
    'Retry GitUnreachable',
  ],
  [
    https,
    "fatal: unable to access 'https://git.example/': Failed to connect to git.example port 443 after 0 ms: Couldn't connect to server",
    'Retry GitUnreachable',
  ],
  [
    https,
    "fatal: unable to access 'https://git.example/': Failed to connect to git.example port 443: Connection refused",
    'Retry GitUnreachable',
  ],
  [https, 'fatal: unable to access x: Recv failure: Connection reset by peer', 'Retry GitUnreachable'],
  [https, 'fatal: unable to access x: Empty reply from server', 'Retry GitUnreachable'],
  [
    https,
    'fatal: unable to access x: SSL certificate problem: unable to get local issuer certificate',
    'Waiting TLSVerificationFailed',
  ],
  [
    https,
    'fatal: unable to access x: server certificate verification failed. CAfile: none CRLfile: none',
    'Waiting TLSVerificationFailed',
  ],
  [
    https,
    "fatal: unable to access x: SSL: no alternative certificate subject name matches target host name 'y'",
    'Waiting TLSVerificationFailed',
  ],
  [
    https,
    'fatal: unable to access x: gnutls_handshake() failed: Error in the pull function.',
    'Waiting TLSVerificationFailed',
  ],
  [
    https,
    'fatal: unable to access x: SSL certificate problem: certificate has expired',
    'Waiting TLSVerificationFailed',
  ],
  [https, "fatal: couldn't find remote ref refs/heads/x", 'Waiting RefNotFound'],
  [https, 'fatal: remote error: upload-pack: not our ref aaaa', 'Waiting RefNotFound'],
  [https, 'error: Server does not allow request for unadvertised object aaaa', 'Waiting RefNotFound'],
  [https, 'fetch-pack: unexpected disconnect while reading sideband packet\nfatal: early EOF', 'Retry GitUnreachable'],
  [https, 'error: RPC failed; curl 18 transfer closed with outstanding read data remaining', 'Retry GitUnreachable'],
  [https, 'fatal: dumb http transport does not support shallow capabilities', 'Stalled GitOperationFailed'],
  [https, 'fatal: write error: No space left on device', 'Retry GitOperationFailed'],
  [https, 'Error: spawn setsid ENOENT', 'Retry GitOperationFailed'],
  [https, '', 'Retry GitOperationFailed'],
  [
    ssh,
    '@@@\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\nHost key verification failed.\nfatal: Could not read from remote repository.',
    'Waiting HostKeyMismatch',
  ],
  [
    ssh,
    'No ED25519 host key is known for [git.example]:2222 and you have requested strict checking.\nHost key verification failed.',
    'Waiting HostKeyUnknown',
  ],
  [
    ssh,
    'git@git.example: Permission denied (publickey).\nfatal: Could not read from remote repository.',
    'Waiting AuthenticationFailed',
  ],
  [
    ssh,
    'Load key "/x/identity": error in libcrypto\ngit@git.example: Permission denied (publickey).',
    'Waiting SecretInvalid',
  ],
  [ssh, 'ssh: Could not resolve hostname git.example: Name or service not known', 'Retry GitUnreachable'],
  [ssh, 'ssh: connect to host git.example port 2222: Connection refused', 'Retry GitUnreachable'],
  [ssh, 'ssh: connect to host git.example port 2222: Connection timed out', 'Retry GitUnreachable'],
  [ssh, 'kex_exchange_identification: Connection closed by remote host', 'Retry GitUnreachable'],
  [
    ssh,
    "fatal: '/a/b.git' does not appear to be a git repository\nfatal: Could not read from remote repository.",
    'Waiting RepositoryNotFound',
  ],
  [ssh, 'ERROR: Repository not found.\nfatal: Could not read from remote repository.', 'Waiting RepositoryNotFound'],
])('%# %o', (remote, stderr, expected) => {
  const error = classifyGitError({ remote, stderr, authenticated: false, wanted: 'refs/heads/x' });
  expect(`${error.policy} ${error.reason}`).toBe(expected);
  expect(error.message).toMatch(/: |; /);
  expect(error.message.length).toBeLessThan(400);
});

test('leaves it to the turns at hosts how long a server that asks to slow down is left alone', () => {
  const error = classifyGitError({
    remote: https,
    stderr: 'The requested URL returned error: 429',
    authenticated: false,
  });
  expect(error.retryAfterMs).toBeUndefined();
});

test('shows of an unknown text only its last line, without secrets', () => {
  const stderr = `noise\nfatal: odd thing at https://user:hunter2@git.example/x\u001b[31m ${'y'.repeat(500)}\n`;
  const { message } = classifyGitError({ remote: https, stderr, authenticated: true });
  expect(message).not.toMatch(/hunter2|noise/);
  expect(message).not.toContain('\u001b');
  expect(message).toContain('fatal: odd thing at https://***@git.example/x');
  expect(message.length).toBeLessThan(400);
});

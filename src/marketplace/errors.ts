import { type Policy, PolicyError } from '../base/errors.ts';
import type { Reason } from '../base/reasons.ts';
import { classifyProxyError } from './errors.proxy.ts';
import type { ProxyRoute } from './proxy.ts';
import type { RemoteUrl } from './url.ts';

/** What is known about a failed Git process. */
export interface GitFailure {
  remote: Pick<RemoteUrl, 'protocol' | 'host' | 'port'>;
  /** What was asked for, for messages: a ref name or commit id. */
  wanted?: string;
  /** Whether the request carried credentials. */
  authenticated: boolean;
  /** Whether these are the token of a GitHub App. */
  app?: boolean | undefined;
  /** The proxy that stands between. */
  proxy?: ProxyRoute | undefined;
  stderr: string;
}

interface Rule {
  pattern: RegExp;
  policy: Policy;
  reason: Reason;
  message: (failure: GitFailure, match: RegExpExecArray) => string;
}

/** Stands in for the words of a process that a signal ended. */
export const KILLED = 'git was ended by a signal';

const at = ({ remote }: GitFailure) => {
  const usual = { https: 443, http: 80, ssh: 22 }[remote.protocol];
  return remote.port === usual ? remote.host : `${remote.host}:${remote.port}`;
};

const refused = (failure: GitFailure): string => {
  if (failure.remote.protocol === 'ssh') {
    return `${at(failure)} refused the ssh key: add its public half to the server (as a deploy key with read access), or correct identity in the Secret of secretRef`;
  }
  if (failure.app) {
    return `${at(failure)} refused the token of the GitHub App: give its installation access to this repository, with the permission Contents: read`;
  }
  return failure.authenticated
    ? `${at(failure)} refused the credentials: correct username/password or bearerToken in the Secret of secretRef, and check that they may read this repository`
    : `${at(failure)} asks for credentials: name a Secret with username/password or bearerToken in spec.secretRef (a repository that does not exist answers the same on many servers)`;
};

const keyscan = ({ remote }: GitFailure) =>
  `ssh-keyscan ${remote.port === 22 ? '' : `-p ${remote.port} `}${remote.host.replace(/^\[|\]$/g, '')}`;

const received = (stderr: string) => {
  const fingerprint = /SHA256:[A-Za-z0-9+/]{43}/.exec(stderr)?.[0];
  return fingerprint ? ` (received ${fingerprint})` : '';
};

/** First match wins, so the specific stands above the general. Samples of every line are in the tests. */
const RULES: Rule[] = [
  {
    pattern: /REMOTE HOST IDENTIFICATION HAS CHANGED|host key for \S+ has changed/i,
    policy: 'Waiting',
    reason: 'HostKeyMismatch',
    message: (f) =>
      `${at(f)} shows another host key than known_hosts lists${received(f.stderr)}: compare it with the one the provider publishes, then put the output of "${keyscan(f)}" into known_hosts of the Secret`,
  },
  {
    pattern: /No \S+ host key is known for|Host key verification failed|no matching host key type/i,
    policy: 'Waiting',
    reason: 'HostKeyUnknown',
    message: (f) =>
      `known_hosts has no usable key for ${at(f)}${received(f.stderr)}: put the output of "${keyscan(f)}" into known_hosts of the Secret after comparing it with the one the provider publishes`,
  },
  {
    pattern: /error in libcrypto|Load key .*(?:invalid format|bad permissions|incorrect passphrase)/i,
    policy: 'Waiting',
    reason: 'SecretInvalid',
    message: () =>
      'identity in the Secret is no private key that ssh can read: store an unencrypted PEM or OpenSSH private key',
  },
  {
    pattern: /Permission denied \(|Too many authentication failures/i,
    policy: 'Waiting',
    reason: 'AuthenticationFailed',
    message: refused,
  },
  {
    pattern: /requested URL returned error: 429|Too Many Requests|rate limit/i,
    policy: 'Waiting',
    reason: 'GitRateLimited',
    message: (f) =>
      `${at(f)} asks to slow down: the operator waits a minute, and longer each time; raise spec.interval if this returns`,
  },
  {
    pattern:
      /Authentication failed|could not read (?:Username|Password)|terminal prompts disabled|requested URL returned error: 40[13]|HTTP 40[13]|Invalid username or (?:password|token)/i,
    policy: 'Waiting',
    reason: 'AuthenticationFailed',
    message: refused,
  },
  {
    pattern: /requested URL returned error: 3\d\d|unable to update url base from redirection|HTTP 3\d\d/i,
    policy: 'Waiting',
    reason: 'RedirectRefused',
    message: (f) =>
      `${at(f)} redirects to another address: write the final address into the URL; redirects are not followed because credentials would go along`,
  },
  {
    pattern:
      /SSL certificate problem|server certificate verification failed|SSL: no alternative certificate|gnutls_handshake|certificate (?:verify|subject|has expired)|error setting certificate|Problem with the SSL CA cert|SSL_connect|server verification failed|does not match target host name/i,
    policy: 'Waiting',
    reason: 'TLSVerificationFailed',
    message: (f) =>
      `the certificate of ${at(f)} is not trusted: put the issuing CA into ca.crt of the Secret, or renew the certificate (its host name and dates must fit)`,
  },
  {
    pattern: /couldn't find remote ref|no such ref was fetched|Remote branch .* not found/i,
    policy: 'Waiting',
    reason: 'RefNotFound',
    message: (f) => `the repository has no ${f.wanted ?? 'such ref'}: push it, or correct spec.ref`,
  },
  {
    pattern: /not our ref|unadvertised object|not a valid object|reference is not a tree/i,
    policy: 'Waiting',
    reason: 'RefNotFound',
    message: (f) =>
      `the server does not hand out ${f.wanted ?? 'this commit'}: it is gone (a force-push, a deleted branch), or the server allows no fetch by id; correct spec.ref.commit or name a branch`,
  },
  {
    pattern:
      /repository '[^']*' not found|Repository not found|does not appear to be a git repository|requested URL returned error: 404|Project not found|no such repository|'[^']*': not a git repository/i,
    policy: 'Waiting',
    reason: 'RepositoryNotFound',
    message: (f) =>
      `${at(f)} has no such repository, or hides it from ${f.authenticated ? 'these' : 'absent'} credentials: correct the URL, or ${f.authenticated ? 'give the account read access' : 'name a Secret in spec.secretRef'}`,
  },
  {
    pattern:
      /Could not resolve (?:host|proxy)|Could not resolve hostname|Temporary failure in name resolution|Name or service not known/i,
    policy: 'Retry',
    reason: 'GitUnreachable',
    message: (f) =>
      `the name ${f.remote.host} does not resolve: correct the host in the URL, or check the DNS of the cluster`,
  },
  {
    pattern:
      /Connection refused|Failed to connect|Couldn't connect to server|Connection timed out|Operation timed out|No route to host|Network is unreachable|Connection reset|Connection closed|Empty reply from server|port \d+: .*timeout/i,
    policy: 'Retry',
    reason: 'GitUnreachable',
    message: (f) =>
      `no connection to ${at(f)}: check host and port of the URL, the server, and the network policies of the operator's namespace`,
  },
  {
    pattern: /requested URL returned error: (5\d\d)|HTTP (5\d\d)/i,
    policy: 'Retry',
    reason: 'GitUnreachable',
    message: (f, m) =>
      `${at(f)} answers with server error ${m[1] ?? m[2]}: the operator tries again by itself; if it stays, look at the server`,
  },
  {
    pattern: /dumb http transport/i,
    policy: 'Stalled',
    reason: 'GitOperationFailed',
    message: (f) => `${at(f)} serves the repository as plain files: only Git's smart HTTP protocol is supported`,
  },
  {
    pattern: new RegExp(`^${KILLED}$`, 'm'),
    policy: 'Retry',
    reason: 'GitOperationFailed',
    message: () =>
      "git was killed before it finished: the operator tries again by itself; if it stays, raise the operator's memory limit",
  },
  {
    pattern: /spawn \S+ ENOENT/,
    policy: 'Retry',
    reason: 'GitOperationFailed',
    message: () =>
      "git or setsid is not installed where the operator runs: install the packages git and util-linux, or use the project's image",
  },
  {
    pattern: /No space left on device|Disk quota exceeded/i,
    policy: 'Retry',
    reason: 'GitOperationFailed',
    message: () => "the operator's disk for mirrors is full: give its volume more space, or lower its disk limit",
  },
  {
    pattern:
      /hung up unexpectedly|early EOF|RPC failed|unexpected disconnect|invalid index-pack output|expected flush/i,
    policy: 'Retry',
    reason: 'GitUnreachable',
    message: (f) =>
      `${at(f)} broke off in the middle of the answer: the operator tries again by itself; if it stays, look at the server or its proxy`,
  },
];

/** A server's own words are shown only in part: they are foreign text. */
function lastWords(stderr: string): string {
  const lines = stderr
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => /^(?:fatal|error|remote|ssh):/.test(line));
  return (lines.at(-1) ?? stderr.trim()).replaceAll(/\p{Cc}/gu, ' ').slice(0, 200);
}

/**
 * The PolicyError that stands for the standard error of a failed Git process (run with LC_ALL=C).
 * Unknown texts become `GitOperationFailed` (Retry) with git's last line, shortened and redacted.
 */
export function classifyGitError(failure: GitFailure): PolicyError {
  const ofProxy = failure.proxy && classifyProxyError(failure.proxy, at(failure), failure.stderr);
  if (ofProxy) return ofProxy;
  for (const { pattern, policy, reason, message } of RULES) {
    const match = pattern.exec(failure.stderr);
    if (!match) continue;
    return new PolicyError(policy, reason, message(failure, match));
  }
  const words = lastWords(failure.stderr);
  const said = words === '' ? 'without a word' : `with "${words}"`;
  return new PolicyError(
    'Retry',
    'GitOperationFailed',
    `git ended ${said} at ${at(failure)}: run "git ls-remote" on the URL to see the same, then correct the URL or the server`,
  );
}

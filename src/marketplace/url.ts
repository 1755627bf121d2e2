import { stalled } from '../base/errors.ts';

/** The part of a spec that says where a repository is: exactly the members of the MarketplaceSource kinds that Git serves. */
export interface RemoteSpec {
  github?: { repository: string; baseURL?: string | undefined } | undefined;
  git?: { url: string } | undefined;
  gitSubdir?: { url: string; path: string } | undefined;
}

/** A checked repository address. */
export interface RemoteUrl {
  /** What is handed to git, behind `--`. */
  url: string;
  /** Equal for two spellings of one address: lower-case scheme and host, no default port, no trailing slash. */
  key: string;
  protocol: 'https' | 'http' | 'ssh';
  /** Lower-case, IPv6 in brackets. */
  host: string;
  /** The explicit or the default port. */
  port: number;
  /** Directory below which the marketplace lies (`git-subdir`); `''` is the root. */
  path: string;
}

const MAX_URL = 2048;
const MAX_PATH = 512;
const DEFAULT_PORT = { https: 443, http: 80, ssh: 22 } as const;
const URL_SHAPE =
  /^(https?|ssh):\/\/(?:([^/@]*)@)?(\[[0-9a-f:.]+\]|[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?)(?::(\d{1,5}))?(\/.*)?$/i;
const SSH_USER = /^[a-z0-9_][a-z0-9_.-]*$/i;
const REPOSITORY_PART = /^[A-Za-z0-9_.][A-Za-z0-9_.-]*$/;
/** Control characters, blanks of any script, quotes and backslashes never stand in an address that a person means. */
const FORBIDDEN = /[\p{Cc}\p{Cf}\p{Z}\\"'`<>]/u;
const ENCODED_CONTROL = /%(?:[01][0-9a-f]|7f)/i;

const FORMS = 'use https://host/path, http://host/path or ssh://user@host/path';

/** Never echoes what stands before an @: it may be a password. */
function shown(url: string): string {
  const safe = url.replaceAll(/[\p{Cc}\p{Cf}\p{Z}]/gu, '?').replace(/^([^/]*\/\/)?[^/]*@/, '$1***@');
  return safe.length > 120 ? `${safe.slice(0, 120)}…` : safe;
}

const bad = (url: string, why: string) => stalled('URLInvalid', `repository URL "${shown(url)}" ${why}`);

function checkUser(url: string, protocol: string, userinfo: string | undefined): void {
  if (userinfo === undefined) return;
  if (userinfo.includes(':'))
    throw bad(url, 'contains a password: put username and password into the Secret of secretRef');
  if (protocol !== 'ssh')
    throw bad(url, 'contains a user name: put username and password into the Secret of secretRef');
  if (!SSH_USER.test(userinfo))
    throw bad(url, 'has a user name with characters that ssh does not take: use letters, digits, ".", "_", "-"');
}

function checkPath(url: string, path: string): void {
  if (path === '' || /^\/+$/.test(path)) throw bad(url, 'names no repository: add its path behind the host');
  if (/[?#]/.test(path)) throw bad(url, 'has a query or a fragment: remove everything from "?" or "#" on');
  if (ENCODED_CONTROL.test(path)) throw bad(url, 'contains an encoded control character: remove it');
  if (path.split('/').some((part) => part === '.' || part === '..'))
    throw bad(url, 'has a "." or ".." in its path: write the path out');
}

/**
 * Checks an address that a user wrote and normalises it.
 * Accepts https, http and ssh URLs; a user name only in ssh URLs and never a password; no options, no other transports, no scp form.
 * @throws PolicyError `URLInvalid` (Stalled), whose message never repeats userinfo.
 */
export function parseUrl(url: string): Omit<RemoteUrl, 'path'> {
  if (url === '') throw bad(url, `is empty: ${FORMS}`);
  if (url.length > MAX_URL) throw bad(url, `is longer than ${MAX_URL} characters: shorten it`);
  if (FORBIDDEN.test(url)) throw bad(url, 'contains blanks, quotes, backslashes or control characters: remove them');
  const match = URL_SHAPE.exec(url);
  if (!match) throw bad(url, `is not supported: ${FORMS}`);
  const [, scheme = '', userinfo, rawHost = '', rawPort, path = ''] = match;
  const protocol = scheme.toLowerCase() as RemoteUrl['protocol'];
  checkUser(url, protocol, userinfo);
  checkPath(url, path);
  const port = rawPort === undefined ? DEFAULT_PORT[protocol] : Number(rawPort);
  if (port < 1 || port > 65_535) throw bad(url, 'has a port outside 1–65535: correct it');
  const host = rawHost.toLowerCase();
  const authority = `${userinfo === undefined ? '' : `${userinfo}@`}${host}${port === DEFAULT_PORT[protocol] ? '' : `:${port}`}`;
  const clean = `${protocol}://${authority}${path}`;
  return { url: clean, key: clean.replace(/\/+$/, ''), protocol, host, port };
}

/**
 * Checks the `path` of a git-subdir source and returns it without a trailing slash.
 * @throws PolicyError `PathInvalid` (Stalled).
 */
export function parseSubPath(path: string): string {
  const fail = (why: string) => stalled('PathInvalid', `path "${shown(path)}" ${why}`);
  if (path.length > MAX_PATH) throw fail(`is longer than ${MAX_PATH} characters: shorten it`);
  if (/[\p{Cc}\\]/u.test(path)) throw fail('contains control characters or backslashes: separate directories with "/"');
  if (path.startsWith('/')) throw fail('is absolute: write it relative to the root of the repository');
  if (path.startsWith('-')) throw fail('starts with "-": name a directory of the repository');
  const clean = path.replace(/\/+$/, '');
  const parts = clean.split('/');
  if (clean === '' || parts.some((part) => part === '' || part === '.' || part === '..')) {
    throw fail('is not a clean path: remove "." and ".." and doubled slashes, and name a directory of the repository');
  }
  if (parts.some((part) => part.toLowerCase() === '.git'))
    throw fail('leads into .git: name a directory of the repository');
  return clean;
}

function githubUrl(spec: NonNullable<RemoteSpec['github']>): string {
  const parts = spec.repository.split('/');
  const clean = parts.map((part) => part.replace(/\.git$/, ''));
  if (parts.length !== 2 || clean.some((part) => !REPOSITORY_PART.test(part) || part === '.' || part === '..')) {
    throw stalled(
      'URLInvalid',
      `github.repository "${shown(spec.repository)}" is not owner/name: write it like acme/skills`,
    );
  }
  const base = (spec.baseURL ?? 'https://github.com').replace(/\/+$/, '');
  return `${base}/${clean.join('/')}.git`;
}

/**
 * The address that a source's spec names.
 * @throws PolicyError `URLInvalid`, `PathInvalid` (Stalled), or `InvalidSpec` when the member of the type is absent.
 */
export function parseRemote(type: 'github' | 'git' | 'git-subdir', spec: RemoteSpec): RemoteUrl {
  if (type === 'github' && spec.github) return { ...parseUrl(githubUrl(spec.github)), path: '' };
  if (type === 'git' && spec.git) return { ...parseUrl(spec.git.url), path: '' };
  if (type === 'git-subdir' && spec.gitSubdir) {
    return { ...parseUrl(spec.gitSubdir.url), path: parseSubPath(spec.gitSubdir.path) };
  }
  const member = type === 'git-subdir' ? 'gitSubdir' : type;
  throw stalled('InvalidSpec', `type ${type} needs the field spec.${member}: add it`);
}

import { BlockList, isIP } from 'node:net';
import { stalled, waiting } from '../base/errors.ts';
import { holdSecret } from '../base/redact.ts';
import type { GitProxy } from './port.ts';
import type { RemoteUrl } from './url.ts';

/** The proxies of the whole process, as HTTP_PROXY, HTTPS_PROXY and NO_PROXY name them; a Secret of a source goes before them. */
export interface ProxySettings {
  http?: string | undefined;
  https?: string | undefined;
  noProxy?: string | undefined;
}

/** A checked proxy. */
export interface ProxyRoute {
  /** `http://host:port` or `https://host:port`, without user name and password. */
  url: string;
  host: string;
  port: number;
  username?: string | undefined;
  password?: string | undefined;
  /** Where it comes from, for messages. */
  from: 'secret' | 'settings';
}

const MAX_ADDRESS = 2048;
const DEFAULT_PORT: Record<string, number> = { 'http:': 80, 'https:': 443 };
const FORM = 'write it like http://proxy.example.com:3128';

function parsed(address: string, fail: (why: string) => Error): ProxyRoute {
  const text = address.trim();
  const url = text.length <= MAX_ADDRESS ? URL.parse(text) : null;
  const usual = url ? DEFAULT_PORT[url.protocol] : undefined;
  const port = url && url.port !== '' ? Number(url.port) : usual;
  if (!url || !usual || !port || url.hostname === '') throw fail(`is no http or https address: ${FORM}`);
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '') throw fail(`has more than host and port: ${FORM}`);
  const route: ProxyRoute = {
    url: `${url.protocol}//${url.hostname}:${port}`,
    host: url.hostname,
    port,
    from: 'settings',
  };
  return url.username === '' ? route : { ...route, ...userinfo(url, fail) };
}

function userinfo(url: URL, fail: (why: string) => Error) {
  try {
    return { username: decodeURIComponent(url.username), password: decodeURIComponent(url.password) };
  } catch {
    throw fail('has a user name or password with a broken %-escape: correct it');
  }
}

const ofSecret = (why: string) => waiting('SecretInvalid', `address in the Secret of proxySecretRef ${why}`);
const ofSettings = (why: string) =>
  stalled('InvalidSpec', `the proxy in the operator's settings (HTTP_PROXY, HTTPS_PROXY or git.proxy) ${why}`);

/**
 * The proxy of a Secret, checked; its password is held by the redactor.
 * @throws PolicyError `SecretInvalid`, `SecretHostNotAllowed` (Waiting).
 */
function routeOfSecret(proxy: GitProxy): ProxyRoute {
  const { address, username, password, hosts } = proxy;
  const route = parsed(address, ofSecret);
  if (route.username !== undefined) {
    throw ofSecret('contains a user name: put it into the keys username and password');
  }
  if (hosts && !hosts.includes(route.host) && !hosts.includes(`${route.host}:${route.port}`)) {
    throw waiting(
      'SecretHostNotAllowed',
      `the Secret of proxySecretRef may not be sent to ${route.host}: add the host to its annotation skills.tfrobot.io/hosts, or correct its address`,
    );
  }
  return { ...route, from: 'secret', ...credentials(username, password) };
}

function credentials(username: string | undefined, password: string | undefined) {
  if (!username && !password) return {};
  if (!username || !password) {
    throw waiting(
      'SecretInvalid',
      `the Secret of proxySecretRef has ${username ? 'username but no password' : 'password but no username'}: give both or none`,
    );
  }
  if (/\p{Cc}/u.test(username + password)) {
    throw waiting(
      'SecretInvalid',
      'username or password in the Secret of proxySecretRef contains control characters: store the value alone, on one line',
    );
  }
  holdSecret(password);
  return { username, password };
}

const ANY_FAMILY = { 4: 'ipv4', 6: 'ipv6' } as const;

function inRange(range: string, host: string): boolean {
  const [network = '', bits = ''] = range.split('/');
  const family = ANY_FAMILY[isIP(network) as 4 | 6];
  const own = ANY_FAMILY[isIP(host) as 4 | 6];
  if (!family || family !== own || !/^\d{1,3}$/.test(bits) || Number(bits) > (family === 'ipv4' ? 32 : 128))
    return false;
  const list = new BlockList();
  list.addSubnet(network, Number(bits), family);
  return list.check(host, own);
}

/**
 * Whether NO_PROXY takes a host out: entries between commas or blanks, `*`, `host[:port]` (its sub-domains too, with or without a
 * leading dot), an address, or a range such as 10.0.0.0/8.
 */
export function isDirect(noProxy: string | undefined, remote: Pick<RemoteUrl, 'host' | 'port'>): boolean {
  const host = remote.host.replace(/^\[|\]$/g, '');
  return (noProxy ?? '')
    .toLowerCase()
    .split(/[\s,]+/)
    .filter(Boolean)
    .some((entry) => {
      if (entry === '*') return true;
      if (entry.includes('/')) return inRange(entry, host);
      const [, name = '', port] = /^\[?(.*?)\]?(?::(\d+))?$/.exec(isIP(entry) ? `[${entry}]` : entry) ?? [];
      if (port !== undefined && Number(port) !== remote.port) return false;
      const bare = name.replace(/^\*?\./, '');
      return bare !== '' && (host === bare || (!isIP(host) && host.endsWith(`.${bare}`)));
    });
}

/**
 * The proxy through which a remote is reached, or undefined: directly. The Secret of the source decides alone where there is one.
 * @throws PolicyError `InvalidSpec` (Stalled) for an ssh remote with a proxy Secret; those of `routeOfSecret`.
 */
export function proxyFor(
  remote: Pick<RemoteUrl, 'protocol' | 'host' | 'port'>,
  own: GitProxy | undefined,
  settings: ProxySettings = {},
): ProxyRoute | undefined {
  if (remote.protocol === 'ssh') {
    if (!own) return undefined;
    throw stalled(
      'InvalidSpec',
      'an ssh URL goes through no proxy: use the https URL of the repository, or remove proxySecretRef',
    );
  }
  if (own) return routeOfSecret(own);
  const address = remote.protocol === 'https' ? settings.https : settings.http;
  if (!address || isDirect(settings.noProxy, remote)) return undefined;
  const route = parsed(address, ofSettings);
  if (route.password) holdSecret(route.password);
  return route;
}

/** The route with its user name and password inside, as `http.proxy` of Git takes it; for the environment of a process alone. */
export function withUserinfo({ url, username, password }: ProxyRoute): string {
  if (username === undefined) return url;
  const userinfo = `${encodeURIComponent(username)}:${encodeURIComponent(password ?? '')}`;
  holdSecret(userinfo);
  return url.replace('://', `://${userinfo}@`);
}

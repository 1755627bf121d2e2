import { type Policy, PolicyError } from '../base/errors.ts';
import type { Reason } from '../base/reasons.ts';
import type { ProxyRoute } from './proxy.ts';

interface ProxyRule {
  pattern: RegExp;
  policy: Policy;
  reason: Reason;
  message: (proxy: string, target: string, secret: boolean, answer: string) => string;
}

const STATUS = /(?:Received HTTP code|CONNECT tunnel failed, response|Proxy CONNECT aborted.*?) ?(\d{3})/;

/** What git and libcurl say when the proxy and not the server behind it is at fault; first match wins. */
const RULES: ProxyRule[] = [
  {
    pattern: /(?:Received HTTP code|response|returned error:|HTTP) 407|Proxy Authentication Required/i,
    policy: 'Waiting',
    reason: 'ProxyAuthFailed',
    message: (proxy, _target, secret) =>
      `the proxy ${proxy} asks for other credentials: correct username and password in ${secret ? 'the Secret of proxySecretRef' : "the operator's proxy settings"}`,
  },
  {
    pattern: /(?:Received HTTP code 5\d\d|response 5\d\d)/i,
    policy: 'Retry',
    reason: 'ProxyUnreachable',
    message: (proxy, target, _secret, answer) =>
      `the proxy ${proxy} did not reach ${target}${answer}: the operator tries again by itself; if it stays, look at the proxy and at the host in the URL`,
  },
  {
    pattern: /Received HTTP code \d{3}|CONNECT tunnel failed/i,
    policy: 'Waiting',
    reason: 'ProxyRefused',
    message: (proxy, target, _secret, answer) =>
      `the proxy ${proxy} does not let connections to ${target} through${answer}: allow the host there, or use another proxy`,
  },
  {
    pattern:
      /Could not resolve proxy|Failed to connect to|Couldn't connect to server|Connection refused|Connection timed out|No route to host|Network is unreachable|Proxy CONNECT aborted|Unsupported proxy/i,
    policy: 'Retry',
    reason: 'ProxyUnreachable',
    message: (proxy, _target, secret) =>
      `no connection to the proxy ${proxy}: check the address in ${secret ? 'the Secret of proxySecretRef' : "the operator's proxy settings"}, the proxy, and the network policies of the operator's namespace`,
  },
];

/** The PolicyError for what went wrong at the proxy, or undefined: it let the request through. */
export function classifyProxyError(
  proxy: Pick<ProxyRoute, 'host' | 'port' | 'from'>,
  target: string,
  stderr: string,
): PolicyError | undefined {
  const rule = RULES.find(({ pattern }) => pattern.test(stderr));
  if (!rule) return undefined;
  const status = STATUS.exec(stderr)?.[1];
  const answer = status ? ` (it answers ${status})` : '';
  const at = `${proxy.host}:${proxy.port}`;
  return new PolicyError(rule.policy, rule.reason, rule.message(at, target, proxy.from === 'secret', answer));
}

import { z } from 'zod';
import { holdSecret } from './base/redact.ts';

/** How the operator talks to Git hosts. */

const count = z.coerce.number().int();
const decodable = (address: string): boolean => {
  try {
    decodeURIComponent(URL.parse(address)?.password ?? '');
    return true;
  } catch {
    return false;
  }
};
// Messages never repeat the value: it may hold a password.
const proxy = z
  .url({ protocol: /^https?$/, error: 'must be an http:// or https:// URL of a proxy' })
  .refine(decodable, 'has a password with a broken %-escape');

export const gitSchema = z
  .strictObject({
    /** Sources and Skills that talk to one host at once. */
    perHost: count.min(1).max(64).default(4),
    /** Least time between the starts of two of them. */
    minIntervalMs: count.min(0).max(60_000).default(0),
    /** Proxies for sources without proxySecretRef; HTTP_PROXY, HTTPS_PROXY and NO_PROXY where they are absent. */
    proxy: z
      .strictObject({ http: proxy.optional(), https: proxy.optional(), noProxy: z.string().optional() })
      .prefault({}),
  })
  .prefault({});

export type GitConfig = z.infer<typeof gitSchema>;

const VARIABLES = { http: 'HTTP_PROXY', https: 'HTTPS_PROXY', noProxy: 'NO_PROXY' } as const;

/** The usual variables, upper case before lower; what the file says goes before them. A missing scheme means http, as for curl. */
export function proxyFromEnvironment(git: unknown, env: NodeJS.ProcessEnv): Record<string, unknown> {
  const given = typeof git === 'object' && git !== null ? (git as { proxy?: unknown }) : {};
  const found: Record<string, string> = {};
  for (const [key, name] of Object.entries(VARIABLES)) {
    const value = (env[name] ?? env[name.toLowerCase()])?.trim();
    if (value) found[key] = key === 'noProxy' || value.includes('://') ? value : `http://${value}`;
  }
  const own = typeof given.proxy === 'object' ? given.proxy : {};
  return { ...given, proxy: { ...found, ...own } };
}

/** Registers the passwords of proxies with the redactor. */
export function holdProxySecrets({ proxy: { http, https } }: GitConfig): void {
  for (const address of [http, https]) {
    const password = address === undefined ? undefined : URL.parse(address)?.password;
    if (!password) continue;
    holdSecret(password);
    holdSecret(decodeURIComponent(password));
  }
}

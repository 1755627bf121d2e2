/** What a registry asks for in `WWW-Authenticate`. Source: RFC 9110 §11.6.1; distribution, token authentication. */
export type Challenge =
  | { scheme: 'basic' }
  | { scheme: 'bearer'; realm: string; service?: string | undefined; scope?: string | undefined };

const MAX_HEADER = 4096;

/** The parameters of one challenge: `key="value"` with backslash escapes, or `key=token`. */
function parameters(text: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const [, key, quoted, token] of text.matchAll(/([\w-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/g)) {
    found.set((key as string).toLowerCase(), token ?? (quoted as string).replaceAll(/\\(.)/g, '$1'));
  }
  return found;
}

/** The challenge that this client can answer, Bearer before Basic; undefined for anything else. */
export function parseChallenge(headers: readonly string[]): Challenge | undefined {
  const text = headers.join(', ').slice(0, MAX_HEADER);
  const bearer = /(?:^|,)\s*bearer\s+(.*)$/is.exec(text)?.[1];
  if (bearer !== undefined) {
    const values = parameters(bearer);
    const realm = values.get('realm');
    if (realm) return { scheme: 'bearer', realm, service: values.get('service'), scope: values.get('scope') };
  }
  return /(?:^|,)\s*basic(?:\s|,|$)/i.test(text) ? { scheme: 'basic' } : undefined;
}

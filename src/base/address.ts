/** Splits a listen address `host:port`, `[v6]:port` or `:port` (every interface). */
export function addressOf(text: string): { host: string | undefined; port: number } {
  const at = text.lastIndexOf(':');
  const host = text.slice(0, at).replace(/^\[(.*)\]$/, '$1');
  return { host: host === '' ? undefined : host, port: Number(text.slice(at + 1)) };
}

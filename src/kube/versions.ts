const NUMERIC = /^(?:0|[1-9]\d{0,37})$/;

/**
 * Order of two resourceVersions of one resource type: negative, 0 or positive; undefined where they cannot be compared.
 * Equality always means something; order only for the decimal numbers that API servers since 1.35 promise and etcd-backed
 * ones have always used.
 */
export function compareVersions(a: string, b: string): number | undefined {
  if (a === b) return 0;
  if (!NUMERIC.test(a) || !NUMERIC.test(b)) return undefined;
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : 1;
}

/** True when `seen` is known to be `wanted` or later. */
export function reaches(seen: string | undefined, wanted: string): boolean {
  if (seen === undefined) return false;
  const order = compareVersions(seen, wanted);
  return order !== undefined && order >= 0;
}

/** What `push` leaves behind in the termination message, for the operator to read. */

/** Longest termination message that the kubelet keeps, in bytes. */
const MAX_MESSAGE = 4096;

/** The pushed image. */
export interface BuildResult {
  /** `sha256:<64 hex>` of the manifest. */
  digest: string;
  /** Sum of manifest, configuration and layers in bytes. */
  size: number;
}

/** True for `sha256:` and 64 lower-case hex digits. */
export const isDigest = (text: unknown): text is string =>
  typeof text === 'string' && /^sha256:[0-9a-f]{64}$/.test(text);

/** The text of a result. */
export const formatResult = ({ digest, size }: BuildResult): string => JSON.stringify({ digest, size });

/** The result in a termination message; undefined for anything that is not exactly one. Never throws. */
export function parseResult(message: string | undefined): BuildResult | undefined {
  if (message === undefined || message.length > MAX_MESSAGE) return undefined;
  try {
    const value: unknown = JSON.parse(message);
    if (typeof value !== 'object' || value === null) return undefined;
    const { digest, size } = value as Partial<Record<keyof BuildResult, unknown>>;
    return isDigest(digest) && Number.isSafeInteger(size) && (size as number) >= 0
      ? { digest, size: size as number }
      : undefined;
  } catch {
    return undefined;
  }
}

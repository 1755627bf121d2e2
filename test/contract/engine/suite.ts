import { randomBytes } from 'node:crypto';
import { request } from 'undici';
import type { CubeStub } from './stubs/cubesandbox.ts';
import type { E2BStub } from './stubs/e2b.ts';

/** Where a contract suite runs: a fresh stub per case, or one real engine, on which cases that need controls are skipped. */
interface Target<Stub> {
  real: boolean;
  /** A pinned image that the engine can pull. */
  image: string;
  open(): Promise<Opened<Stub>>;
}

/** One opened target; `stub` only where it is one. */
export interface Opened<Stub> extends AsyncDisposable {
  url: string;
  key: string | undefined;
  stub: Stub | undefined;
}

export type E2BTarget = Target<E2BStub>;
export type CubeTarget = Target<CubeStub>;

/** An answer of the raw API. */
export interface Raw {
  status: number;
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: the suite reads foreign JSON field by field.
  json: any;
  headers: Record<string, string | string[] | undefined>;
}

/** Speaks to an engine without any of the product's code. */
export async function call(
  url: string,
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
  path: string,
  options: { headers?: Record<string, string>; body?: unknown; raw?: string } = {},
): Promise<Raw> {
  const body = options.raw ?? (options.body === undefined ? undefined : JSON.stringify(options.body));
  const answer = await request(url + path, {
    method,
    headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...options.headers },
    body: body ?? null,
  });
  const text = await answer.body.text();
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    json = undefined;
  }
  return { status: answer.statusCode, text, json, headers: answer.headers };
}

/** A digest that no other case uses. */
export const freshDigest = (): string => `sha256:${randomBytes(32).toString('hex')}`;
/** A template name that no other case uses. */
export const freshName = (): string => `contract-${randomBytes(6).toString('hex')}`;
/** The stub of a case that runs on stubs only. */
export function stubOf<Stub>(opened: Opened<Stub>): Stub {
  if (!opened.stub) throw new Error('this case needs a stub');
  return opened.stub;
}

import { DeadlineExceeded } from '../base/deadline.ts';
import { messageOf, PolicyError, retry, waiting } from '../base/errors.ts';
import { isTlsFailure } from '../base/http.ts';

/** A request that did not get the answer it needs. */
export interface RegistryCall {
  /** Host and port of the registry. */
  host: string;
  /** What was tried, for messages: `reading the manifest of team/pdf`. */
  action: string;
}

/** An answer, reduced to what decides. */
export interface RegistryAnswer {
  status: number;
  /** The body, untrusted. */
  text: string;
  retryAfter: string | undefined;
}

const MAX_RETRY_AFTER_MS = 15 * 60_000;
const MAX_DETAIL = 200;

/** Code and message of the first error in a registry's body; empty when it is none. */
export function errorOf(text: string): { code: string; message: string } {
  try {
    const body = JSON.parse(text) as { errors?: { code?: unknown; message?: unknown }[] } | null;
    const first = body?.errors?.[0];
    return { code: String(first?.code ?? ''), message: String(first?.message ?? '') };
  } catch {
    return { code: '', message: '' };
  }
}

function detailOf(text: string): string {
  const { code, message } = errorOf(text);
  const line = `${code} ${message}`
    .replaceAll(/[\p{Cc}\p{Cf}\s]+/gu, ' ')
    .trim()
    .slice(0, MAX_DETAIL);
  return line === '' ? '' : ` (${line})`;
}

/** Milliseconds of a Retry-After header, seconds or HTTP date, at most a quarter of an hour. */
function retryAfterOf(header: string | undefined, now: number): { retryAfterMs?: number } {
  if (header === undefined) return {};
  const seconds = /^\s*\d{1,9}\s*$/.test(header) ? Number(header) * 1000 : Date.parse(header) - now;
  return Number.isNaN(seconds) ? {} : { retryAfterMs: Math.min(Math.max(seconds, 0), MAX_RETRY_AFTER_MS) };
}

/** The error of an answer that refuses the request. */
export function refused(call: RegistryCall, answer: RegistryAnswer, now: number): PolicyError {
  const { status } = answer;
  const where = `registry ${call.host} answered ${status}${detailOf(answer.text)} to ${call.action}`;
  if (status === 401) {
    return waiting('RegistryAuthFailed', `${where}; put a valid credential into the registry Secret of the operator`);
  }
  if (status === 403) {
    return waiting('RegistryDenied', `${where}; give the operator's account that right below its repository prefix`);
  }
  if (status === 429) {
    return retry('RegistryRateLimited', `${where}; it is tried again`, {
      retryAfterMs: 30_000,
      ...retryAfterOf(answer.retryAfter, now),
    });
  }
  if (status >= 500 || status === 408) {
    return retry(
      'RegistryUnavailable',
      `${where}; it is tried again, check that the registry is well`,
      retryAfterOf(answer.retryAfter, now),
    );
  }
  return unexpected(call, `answered ${status}${detailOf(answer.text)}`);
}

/** The error of an answer that makes no sense; `what` completes "registry … ". */
export const unexpected = (call: RegistryCall, what: string): PolicyError =>
  retry(
    'RegistryUnexpectedAnswer',
    `registry ${call.host} ${what} to ${call.action}; check that the address is that of an image registry`,
  );

const codeOf = (error: unknown): string => {
  const { code, cause } = error as { code?: unknown; cause?: unknown };
  return typeof code === 'string' ? code : cause ? codeOf(cause) : '';
};

/** The error of a request without an answer; a PolicyError passes unchanged. */
export function unanswered(call: RegistryCall, error: unknown): PolicyError {
  if (error instanceof PolicyError) return error;
  if (error instanceof DeadlineExceeded) {
    return retry(
      'RegistryUnavailable',
      `registry ${call.host} did not answer within ${error.ms} ms to ${call.action}; it is tried again, check the registry's load and the network`,
      { cause: error },
    );
  }
  const code = codeOf(error);
  const why = code || messageOf(error);
  if (isTlsFailure(code)) {
    return waiting(
      'RegistryConfigInvalid',
      `registry ${call.host} shows a certificate that is not trusted, or speaks no TLS (${why}); give its CA in the build settings`,
      { cause: error },
    );
  }
  return retry(
    'RegistryUnavailable',
    `registry ${call.host} cannot be reached for ${call.action} (${why}); it is tried again, check address and network`,
    { cause: error },
  );
}

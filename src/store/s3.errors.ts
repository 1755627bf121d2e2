/** What goes wrong between the operator and the S3 store, named with the reasons of the catalogue. Pure. */
import { DeadlineExceeded } from '../base/deadline.ts';
import { PolicyError, retry, waiting } from '../base/errors.ts';

/** What is known of a failed call. */
export interface FailedCall {
  error: unknown;
  /** For people: `put skills/v1/…`. */
  action: string;
  /** HTTP status of the last answer; undefined: none came. */
  status: number | undefined;
  /** Scheme, host and port. */
  endpoint: string;
  bucket: string;
}

/** The code of a failure: S3's own, else the socket's, else ''. */
function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null | undefined)?.code;
  return typeof code === 'string' ? code.slice(0, 64) : '';
}

const HTTP_RETRYABLE = new Set([408, 409, 429, 500, 502, 503, 504, 507]);
const SOCKET_RETRYABLE = new Set(['ECONNRESET', 'EPIPE', 'ECONNREFUSED', 'ECONNABORTED', 'ETIMEDOUT', 'EAI_AGAIN']);

/** True when the same call may succeed at once: a dying socket, or a server that is briefly busy. Not after a deadline. */
export function isTransient(error: unknown, status: number | undefined): boolean {
  if (error instanceof DeadlineExceeded) return false;
  if (status !== undefined && HTTP_RETRYABLE.has(status)) return true;
  return SOCKET_RETRYABLE.has(codeOf(error)) || (error instanceof Error && error.message === 'aborted');
}

/** True when the store has no such key. A HEAD has no body to say so in, so there a 404 is taken for it. */
export const isMissingKey = (error: unknown, status: number | undefined, verb: string): boolean =>
  status === 404 && (codeOf(error) === 'NoSuchKey' || (verb === 'head' && codeOf(error) === 'NotFound'));

type Rule = (call: FailedCall) => PolicyError;
const where = (call: FailedCall): string => `the S3 store at ${call.endpoint}`;

const denied =
  (problem: string, fix: string): Rule =>
  (call) =>
    waiting('StoreAccessDenied', `${where(call)} ${problem} (bucket ${call.bucket}, ${call.action}); ${fix}`);

const config =
  (problem: string, fix: string): Rule =>
  (call) =>
    waiting('StoreConfigInvalid', `${where(call)} ${problem} (bucket ${call.bucket}, ${call.action}); ${fix}`);

const noBucket: Rule = (call) =>
  waiting(
    'StoreBucketNotFound',
    `${where(call)} has no bucket ${call.bucket}; create it, or correct the bucket in the operator's settings (STORE_BUCKET)`,
  );

const skew: Rule = (call) =>
  waiting(
    'StoreClockSkew',
    `the clocks of the operator and of ${where(call)} differ by more than 15 minutes; set both by NTP (${call.action})`,
  );

const badCertificate: Rule = (call) =>
  config(
    `shows a TLS certificate that is not trusted: ${codeOf(call.error)}`,
    'give its CA in STORE_CA_FILE, and name the host as the certificate does',
  )(call);

const noHost: Rule = (call) =>
  retry(
    'StoreUnavailable',
    `the host name of ${where(call)} cannot be resolved (${codeOf(call.error)}); check STORE_ENDPOINT and the cluster's DNS`,
  );

const wrongRegion = config('expects another region', "set STORE_REGION to the bucket's region");
const wrongProtocol = config(
  'does not answer as an S3 server',
  'check scheme, host and port of STORE_ENDPOINT (http or https)',
);
const tooShort: Rule = (call) =>
  waiting(
    'StoreCorrupt',
    `an object of bucket ${call.bucket} at ${call.endpoint} is shorter than its manifest says (${call.action}); annotate the Skill with skills.tfrobot.io/requestedAt to store it again`,
  );

const notConditional = config(
  'does not support conditional writes (If-None-Match)',
  'use a release of the server that does; packages are written only when absent',
);

/** S3 and socket codes with a meaning of their own. */
const BY_CODE: ReadonlyMap<string, Rule> = new Map<string, Rule>([
  ['AccessDenied', denied('refuses the action', 'check the access key and its policy for this bucket')],
  ['AllAccessDisabled', denied('has this bucket disabled', 'enable it, or choose another bucket (STORE_BUCKET)')],
  ['InvalidAccessKeyId', denied('does not know the access key', "correct STORE_ACCESS_KEY in the operator's Secret")],
  [
    'SignatureDoesNotMatch',
    denied('does not accept the secret key', "correct STORE_SECRET_KEY in the operator's Secret"),
  ],
  ['NoSuchBucket', noBucket],
  ['InvalidBucketName', noBucket],
  ['RequestTimeTooSkewed', skew],
  ['AuthorizationHeaderMalformed', wrongRegion],
  ['PermanentRedirect', wrongRegion],
  ['MovedPermanently', wrongRegion],
  ['TemporaryRedirect', wrongRegion],
  ['InvalidRange', tooShort],
  ['NotFound', wrongProtocol],
  ['NotImplemented', notConditional],
  ['MethodNotAllowed', notConditional],
  ['ENOTFOUND', noHost],
  ['EAI_AGAIN', noHost],
  ['EPROTO', wrongProtocol],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', badCertificate],
  ['SELF_SIGNED_CERT_IN_CHAIN', badCertificate],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', badCertificate],
  ['UNABLE_TO_GET_ISSUER_CERT', badCertificate],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', badCertificate],
  ['CERT_HAS_EXPIRED', badCertificate],
  ['CERT_NOT_YET_VALID', badCertificate],
  ['ERR_TLS_CERT_ALTNAME_INVALID', badCertificate],
]);

function byStatus(call: FailedCall): PolicyError {
  const code = codeOf(call.error);
  const { status } = call;
  if (status === 401 || status === 403) {
    return denied('refuses the action', 'check the access key and its policy for this bucket')(call);
  }
  const plain = status !== undefined && status < 500 && code === '';
  if (code.startsWith('HPE_') || code.startsWith('ERR_SSL') || plain) return wrongProtocol(call);
  const detail = [status && `HTTP ${status}`, code].filter(Boolean).join(', ') || 'no answer';
  return retry(
    'StoreUnavailable',
    `${where(call)} failed (${detail}; bucket ${call.bucket}, ${call.action}); the operator tries again, check that the server is up and reachable`,
  );
}

/** The PolicyError of a failed call; a PolicyError passes unchanged. Messages name endpoint, bucket, key and fix. */
export function storeError(call: FailedCall): PolicyError {
  const { error } = call;
  if (error instanceof PolicyError) return error;
  if (error instanceof DeadlineExceeded) {
    return retry(
      'StoreTimeout',
      `${where(call)} did not answer within ${error.ms} ms (bucket ${call.bucket}, ${call.action}); the operator tries again, check the server's load and the network`,
      { cause: error },
    );
  }
  return (BY_CODE.get(codeOf(error)) ?? byStatus)(call);
}

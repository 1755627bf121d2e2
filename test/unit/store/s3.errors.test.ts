import { describe, expect, test } from 'vitest';
import { DeadlineExceeded } from '../../../src/base/deadline.ts';
import { retry } from '../../../src/base/errors.ts';
import { type FailedCall, isMissingKey, isTransient, storeError } from '../../../src/store/s3.errors.ts';

const failure = (code?: string): Error => Object.assign(new Error('failed'), code === undefined ? {} : { code });
const call = (error: unknown, status?: number): FailedCall => ({
  error,
  status,
  action: 'put v1/i/packages/a/0/package.tar',
  endpoint: 'http://minio:9000',
  bucket: 'skills',
});

describe('storeError', () => {
  test.each<[string, FailedCall, string, string]>([
    ['AccessDenied', call(failure('AccessDenied'), 403), 'Waiting', 'StoreAccessDenied'],
    ['a 403 without a body', call(failure(), 403), 'Waiting', 'StoreAccessDenied'],
    ['a 401', call(failure(), 401), 'Waiting', 'StoreAccessDenied'],
    ['InvalidAccessKeyId', call(failure('InvalidAccessKeyId'), 403), 'Waiting', 'StoreAccessDenied'],
    ['SignatureDoesNotMatch', call(failure('SignatureDoesNotMatch'), 403), 'Waiting', 'StoreAccessDenied'],
    ['NoSuchBucket', call(failure('NoSuchBucket'), 404), 'Waiting', 'StoreBucketNotFound'],
    ['RequestTimeTooSkewed', call(failure('RequestTimeTooSkewed'), 403), 'Waiting', 'StoreClockSkew'],
    [
      'AuthorizationHeaderMalformed',
      call(failure('AuthorizationHeaderMalformed'), 400),
      'Waiting',
      'StoreConfigInvalid',
    ],
    ['NotImplemented', call(failure('NotImplemented'), 501), 'Waiting', 'StoreConfigInvalid'],
    ['a 400 that is not S3', call(failure(), 400), 'Waiting', 'StoreConfigInvalid'],
    ['an answer that is not HTTP', call(failure('HPE_INVALID_CONSTANT')), 'Waiting', 'StoreConfigInvalid'],
    ['a self-signed certificate', call(failure('DEPTH_ZERO_SELF_SIGNED_CERT')), 'Waiting', 'StoreConfigInvalid'],
    ['InvalidRange', call(failure('InvalidRange'), 416), 'Waiting', 'StoreCorrupt'],
    ['a refused connection', call(failure('ECONNREFUSED')), 'Retry', 'StoreUnavailable'],
    ['an unknown host', call(failure('ENOTFOUND')), 'Retry', 'StoreUnavailable'],
    ['a 503', call(failure(), 503), 'Retry', 'StoreUnavailable'],
    ['a 507', call(failure('XMinioStorageFull'), 507), 'Retry', 'StoreUnavailable'],
    ['something thrown that is no error', call('boom'), 'Retry', 'StoreUnavailable'],
    ['a deadline', call(new DeadlineExceeded(15_000)), 'Retry', 'StoreTimeout'],
  ])('%s', (_name, failed, policy, reason) => {
    expect(storeError(failed)).toMatchObject({ policy, reason });
  });

  test('messages name endpoint, bucket, key and what to do', () => {
    const codes = [
      'AccessDenied',
      'InvalidAccessKeyId',
      'SignatureDoesNotMatch',
      'NoSuchBucket',
      'RequestTimeTooSkewed',
      'NotImplemented',
      'ECONNREFUSED',
      'ENOTFOUND',
      'CERT_HAS_EXPIRED',
    ];
    const messages = [
      ...codes.map((code) => storeError(call(failure(code))).message),
      storeError(call(new DeadlineExceeded(15_000))).message,
    ];
    expect(messages).toMatchInlineSnapshot(`
      [
        "the S3 store at http://minio:9000 refuses the action (bucket skills, put v1/i/packages/a/0/package.tar); check the access key and its policy for this bucket",
        "the S3 store at http://minio:9000 does not know the access key (bucket skills, put v1/i/packages/a/0/package.tar); correct STORE_ACCESS_KEY in the operator's Secret",
        "the S3 store at http://minio:9000 does not accept the secret key (bucket skills, put v1/i/packages/a/0/package.tar); correct STORE_SECRET_KEY in the operator's Secret",
        "the S3 store at http://minio:9000 has no bucket skills; create it, or correct the bucket in the operator's settings (STORE_BUCKET)",
        "the clocks of the operator and of the S3 store at http://minio:9000 differ by more than 15 minutes; set both by NTP (put v1/i/packages/a/0/package.tar)",
        "the S3 store at http://minio:9000 does not support conditional writes (If-None-Match) (bucket skills, put v1/i/packages/a/0/package.tar); use a release of the server that does; packages are written only when absent",
        "the S3 store at http://minio:9000 failed (ECONNREFUSED; bucket skills, put v1/i/packages/a/0/package.tar); the operator tries again, check that the server is up and reachable",
        "the host name of the S3 store at http://minio:9000 cannot be resolved (ENOTFOUND); check STORE_ENDPOINT and the cluster's DNS",
        "the S3 store at http://minio:9000 shows a TLS certificate that is not trusted: CERT_HAS_EXPIRED (bucket skills, put v1/i/packages/a/0/package.tar); give its CA in STORE_CA_FILE, and name the host as the certificate does",
        "the S3 store at http://minio:9000 did not answer within 15000 ms (bucket skills, put v1/i/packages/a/0/package.tar); the operator tries again, check the server's load and the network",
      ]
    `);
  });

  test('a PolicyError passes unchanged', () => {
    const error = retry('StoreTimeout', 'x');
    expect(storeError(call(error))).toBe(error);
  });
});

test.each<[string, unknown, number | undefined, boolean]>([
  ['a dying socket', failure('ECONNRESET'), undefined, true],
  ['a server that is down', failure('ECONNREFUSED'), undefined, true],
  ['a cut answer', failure('ECONNRESET'), 200, true],
  ['a busy server', failure('SlowDown'), 503, true],
  ['two conditional writes at once', failure('ConditionalRequestConflict'), 409, true],
  ['a refusal', failure('AccessDenied'), 403, false],
  ['a deadline', new DeadlineExceeded(1), 503, false],
])('whether a call is repeated at once after %s', (_name, error, status, repeated) => {
  expect(isTransient(error, status)).toBe(repeated);
});

test.each<[string, unknown, number, string, boolean]>([
  ['a GET that says NoSuchKey', failure('NoSuchKey'), 404, 'get', true],
  ['a HEAD, which has no body', failure('NotFound'), 404, 'head', true],
  ['a GET of something that is no S3 server', failure('NotFound'), 404, 'get', false],
  ['a missing bucket', failure('NoSuchBucket'), 404, 'get', false],
  ['a refusal', failure('AccessDenied'), 403, 'head', false],
])('whether a 404 means a missing key: %s', (_name, error, status, verb, expected) => {
  expect(isMissingKey(error, status, verb)).toBe(expected);
});

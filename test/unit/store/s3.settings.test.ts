import { describe, expect, test } from 'vitest';
import { parseSettings } from '../../../src/store/s3.settings.ts';

describe('parseSettings', () => {
  test.each([
    ['http://127.0.0.1:8333', { origin: 'http://127.0.0.1:8333', host: '127.0.0.1', port: 8333, tls: false }],
    ['https://s3.example.com', { origin: 'https://s3.example.com', host: 's3.example.com', port: 443, tls: true }],
    ['http://minio/', { origin: 'http://minio', host: 'minio', port: 80, tls: false }],
    ['http://[::1]:9000', { origin: 'http://[::1]:9000', host: '::1', port: 9000, tls: false }],
  ])('%s', (endpoint, expected) => {
    expect(parseSettings({ endpoint, bucket: 'skills' })).toEqual(expected);
  });

  test.each(['', 'minio:9000', 'ftp://minio', 'http://minio/path', 'http://minio?x=1', 'http://user:hunter22@minio'])(
    'the endpoint %j is refused, and no part of it is repeated',
    (endpoint) => {
      expect(() => parseSettings({ endpoint, bucket: 'skills' })).toThrowErrorMatchingInlineSnapshot(
        `[PolicyError: the store endpoint must be a plain URL like http://minio.minio.svc:9000; correct STORE_ENDPOINT]`,
      );
    },
  );

  test.each(['', 'ab', 'Skills', '-skills', 'skills/x', '../x', 'a'.repeat(64)])(
    'the bucket %j is refused',
    (bucket) => {
      expect(() => parseSettings({ endpoint: 'http://minio', bucket })).toThrow(
        expect.objectContaining({ reason: 'StoreConfigInvalid', policy: 'Waiting' }),
      );
    },
  );
});

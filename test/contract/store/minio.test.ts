import { test } from 'vitest';
import { packageStoreContract } from './packages.suite.ts';
import { objectStoreContract } from './suite.ts';

/** A MinIO of the person who runs the tests: address, a bucket that exists, and a key that may read, write, list and delete in it. */
const { TEST_MINIO_URL, TEST_MINIO_BUCKET, TEST_MINIO_ACCESS_KEY, TEST_MINIO_SECRET_KEY, TEST_MINIO_REGION } =
  process.env;

if (TEST_MINIO_URL) {
  const connect = async () => ({
    endpoint: TEST_MINIO_URL,
    bucket: TEST_MINIO_BUCKET ?? 'contract',
    region: TEST_MINIO_REGION ?? 'us-east-1',
    accessKey: TEST_MINIO_ACCESS_KEY ?? 'minioadmin',
    secretKey: TEST_MINIO_SECRET_KEY ?? 'minioadmin',
  });
  objectStoreContract('MinIO', connect);
  packageStoreContract('MinIO', connect);
} else {
  console.log('skipped: the store contract on MinIO (set TEST_MINIO_URL and TEST_MINIO_BUCKET to run it)');
  test.skip('the store contract on MinIO', () => {});
}

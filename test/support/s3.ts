import { randomBytes } from 'node:crypto';
import { Client } from 'minio';
import type { ClusterInfo } from './cluster-info.ts';

/** A plain S3 client of the test cluster, independent of `src/store`. */
export function s3Client({ endpoint, accessKey, secretKey, region }: ClusterInfo['s3']): Client {
  const { hostname, port, protocol } = new URL(endpoint);
  return new Client({
    endPoint: hostname,
    port: Number(port),
    useSSL: protocol === 'https:',
    accessKey,
    secretKey,
    region,
    pathStyle: true,
  });
}

/** Makes a bucket with a name of its own and returns the name. */
export async function makeBucket(s3: ClusterInfo['s3'], prefix = 'test'): Promise<string> {
  const bucket = `${prefix}-${randomBytes(5).toString('hex')}`;
  await s3Client(s3).makeBucket(bucket, s3.region);
  return bucket;
}

/** Names and sizes of everything in a bucket below a prefix, sorted by name. */
export async function listObjects(
  s3: ClusterInfo['s3'],
  bucket: string,
  prefix = '',
): Promise<{ key: string; size: number }[]> {
  const found: { key: string; size: number }[] = [];
  for await (const item of s3Client(s3).listObjectsV2(bucket, prefix, true)) {
    if (item.name) found.push({ key: item.name, size: item.size });
  }
  return found.sort((a, b) => (a.key < b.key ? -1 : 1));
}

/** The bytes of one object. */
export async function readObject(s3: ClusterInfo['s3'], bucket: string, key: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of await s3Client(s3).getObject(bucket, key)) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

import { waiting } from '../base/errors.ts';

/** Address and credentials of a bucket. */
export interface S3Settings {
  /** `http://host:port` or `https://host[:port]`, nothing behind it. */
  endpoint: string;
  bucket: string;
  region: string;
  accessKey: string;
  secretKey: string;
  /** PEM text of the CA that signed the server's certificate; absent: the system's CAs. */
  ca?: string | undefined;
  /** Deadline of a call in milliseconds, to which every MiB moved adds one second. Default 15,000. */
  timeoutMs?: number | undefined;
}

/** Where the server listens. */
export interface Endpoint {
  /** Scheme, host and port, for messages. */
  origin: string;
  host: string;
  port: number;
  tls: boolean;
}

const BUCKET = /^(?!xn--)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;

/** Checks endpoint and bucket name; throws `StoreConfigInvalid`, which never repeats a password of the URL. */
export function parseSettings({ endpoint, bucket }: Pick<S3Settings, 'endpoint' | 'bucket'>): Endpoint {
  const url = URL.parse(endpoint);
  const plain = url && url.pathname === '/' && !url.search && !url.hash && !url.username && !url.password;
  if (!plain || !/^https?:$/.test(url.protocol)) {
    throw waiting(
      'StoreConfigInvalid',
      'the store endpoint must be a plain URL like http://minio.minio.svc:9000; correct STORE_ENDPOINT',
    );
  }
  if (!BUCKET.test(bucket)) {
    throw waiting(
      'StoreConfigInvalid',
      `${JSON.stringify(bucket)} is no bucket name (3–63 of a-z, 0-9, - and .); correct STORE_BUCKET`,
    );
  }
  const tls = url.protocol === 'https:';
  return {
    origin: url.origin,
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: Number(url.port) || (tls ? 443 : 80),
    tls,
  };
}

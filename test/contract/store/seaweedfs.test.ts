import { inject } from 'vitest';
import { makeBucket } from '../../support/s3.ts';
import { packageStoreContract } from './packages.suite.ts';
import { objectStoreContract } from './suite.ts';

let bucket: Promise<string> | undefined;

/** One bucket for both suites: the server sets several volumes aside for each. */
const connect = async () => {
  const { s3 } = inject('cluster');
  bucket ??= makeBucket(s3, 'contract');
  return { ...s3, bucket: await bucket };
};

objectStoreContract('SeaweedFS', connect);
packageStoreContract('SeaweedFS', connect);

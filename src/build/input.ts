import type { Engine } from '../protocol/types.ts';
import { DOCKERFILE } from './arguments.ts';

/** Checksum and size of one stored object. */
interface StoredObject {
  /** 64 hex digits. */
  sha256: string;
  /** Bytes. */
  size: number;
}

/** One attempt at one image. */
export interface BuildInput {
  skill: { namespace: string; name: string; uid: string };
  engine: Engine;
  /** Digest of the package, 64 hex digits. */
  digest: string;
  /** From `inputHash()`. */
  inputHash: string;
  /** From 1. */
  attempt: number;
  context: { tar: StoredObject; dockerfile: StoredObject };
}

/** Presigned URLs of the two objects; they must live `urlSeconds()`. */
export interface ContextURLs {
  tar: string;
  dockerfile: string;
}

/** Keys of the Secret with the URLs, which are the names of the files that `fetch` reads. */
export const URL_KEYS = { tar: 'package.tar', dockerfile: DOCKERFILE } as const;

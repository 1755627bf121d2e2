/** An image that the registry has. */
export interface RegistryImage {
  /** `sha256:<64 hex>`, computed over the bytes that the registry sent. */
  digest: string;
  /** Sum of manifest, configuration and layers in bytes. */
  size: number;
}

/**
 * The image registry, with the operator's own credential.
 * `repository` is the path without the host; every call has its own deadline, obeys `signal` and fails with a PolicyError of a Registry* reason.
 */
export interface Registry {
  /** Host and port, as in the name of an image. */
  readonly host: string;
  /** Proves address, certificate and credential. */
  ping(signal: AbortSignal): Promise<void>;
  /** The image of a digest or tag; undefined when the registry has none. An index of several images is `ImageInvalid`. */
  image(repository: string, reference: string, signal: AbortSignal): Promise<RegistryImage | undefined>;
  /** Whether the registry has a manifest of that digest, without reading it. */
  has(repository: string, digest: string, signal: AbortSignal): Promise<boolean>;
  /** Every tag of a repository, in any order; none for a repository that is not there. */
  tags(repository: string, signal: AbortSignal): Promise<string[]>;
  /** Deletes by digest, which takes every tag of that digest in the repository. `unsupported`: this registry deletes nothing. */
  deleteImage(repository: string, digest: string, signal: AbortSignal): Promise<'deleted' | 'absent' | 'unsupported'>;
  /** Whether somebody without a credential could push to the repository; the upload that proves it is cancelled. */
  acceptsAnonymousWrites(repository: string, signal: AbortSignal): Promise<boolean>;
  /** Closes its connections. */
  close(): Promise<void>;
}

/**
 * Exit codes of the two programs of this product in a build pod. They are the whole language between pod and operator:
 * a container's message can be forged by what ran before, its exit code cannot.
 */
export const EXIT = {
  /** Done. */
  Ok: 0,
  /** The store refuses the URL (expired, 403) or has no such object (404): new URLs may help. */
  ContextRefused: 10,
  /** No answer from the store, or a server error. */
  ContextUnreachable: 11,
  /** What the store sent is not what the operator stored. */
  ContextCorrupt: 12,
  /** The registry refuses credential, repository name or certificate. */
  PushDenied: 20,
  /** The registry did not answer, answered with a server error or asked to slow down. */
  PushUnavailable: 21,
  /** The image is larger than an image may be. */
  ImageTooLarge: 22,
  /** The build left something that is not exactly one image. */
  LayoutRefused: 23,
  /** Wrong arguments or files: a defect of the operator. */
  Usage: 64,
  /** Told to stop. */
  Stopped: 143,
} as const;

/** One of the exit codes. */
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

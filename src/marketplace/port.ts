import type { GitMode } from '../protocol/types.ts';

/** Which commit of a repository; the first set member in this order wins: commit, name, semver, tag, branch; none: the remote's HEAD. */
export interface RefSpec {
  commit?: string | undefined;
  name?: string | undefined;
  semver?: string | undefined;
  tag?: string | undefined;
  branch?: string | undefined;
}

/** What a Secret says about a GitHub App; checked on use. */
export interface GitHubApp {
  appID: string;
  /** One of the two; the id goes first. */
  installationID?: string | undefined;
  owner?: string | undefined;
  /** PEM. */
  privateKey: string;
  /** Address of the API; undefined: that of github.com. */
  baseURL?: string | undefined;
}

/** The decoded values of a credential Secret (keys as Flux names them), plus the hosts it is bound to. */
export interface GitCredential {
  username?: string | undefined;
  password?: string | undefined;
  bearerToken?: string | undefined;
  identity?: string | undefined;
  knownHosts?: string | undefined;
  caCert?: string | undefined;
  githubApp?: GitHubApp | undefined;
  /** From the annotation skills.tfrobot.io/hosts: the value goes to these hosts alone. */
  hosts?: string[] | undefined;
}

/** The decoded values of a proxy Secret (keys as Flux names them), plus the hosts it is bound to. */
export interface GitProxy {
  /** http or https URL of the proxy. */
  address: string;
  username?: string | undefined;
  password?: string | undefined;
  /** From the annotation skills.tfrobot.io/hosts. */
  hosts?: string[] | undefined;
}

/** A remote as a source names it. */
export interface Remote {
  /** https, http or ssh URL, checked again by the adapter. */
  url: string;
  credential?: GitCredential | undefined;
  /** From proxySecretRef; undefined: the proxy of the process, if any. */
  proxy?: GitProxy | undefined;
  /** Deadline of each Git process, in milliseconds (spec.timeout). */
  timeoutMs: number;
}

/** What a ref points at, learnt from the remote without fetching. */
export interface Resolved {
  /** 40 hex digits. */
  commit: string;
  /** For people and status: `main@sha1:<commit>`, `v1.2.0@sha1:<commit>`, or `sha1:<commit>`. */
  revision: string;
  /** The full ref to fetch, or the commit id itself. */
  fetchRef: string;
}

/** One entry of a Git tree object. */
export interface TreeEntry {
  /** Name within its tree; `rawName` is set when the bytes are not UTF-8 (then `name` is latin1). */
  name: string;
  rawName?: Uint8Array;
  mode: GitMode | '040000';
  oid: string;
}

/** A blob or its absence (`missing`: filtered because it is above the limit, `size` −1). */
export interface Blob {
  size: number;
  content?: Uint8Array;
}

/** Read access to the objects of one fetched commit; dispose it when done so that the mirror may be replaced. */
export interface TreeReader extends AsyncDisposable {
  readonly commit: string;
  /** Entries of the tree at `path` below the root ('' is the root), or undefined when there is no directory. */
  tree(path: string, signal: AbortSignal): Promise<{ oid: string; entries: TreeEntry[] } | undefined>;
  /** Entries of a tree object by id; undefined when the object is not in the mirror. */
  treeByOid(oid: string, signal: AbortSignal): Promise<TreeEntry[] | undefined>;
  /** One blob, read only up to `maxBytes`: above it `content` is absent. */
  blob(oid: string, maxBytes: number, signal: AbortSignal): Promise<Blob>;
}

/** Where content comes from. Errors are PolicyErrors with the Git reasons of the catalogue. */
export interface TreeSource {
  /** ls-remote and pick: one request to the remote, nothing fetched. */
  resolve(remote: Remote, ref: RefSpec, signal: AbortSignal): Promise<Resolved>;
  /** A reader on that commit; fetches it (depth 1) only when the mirror lacks it. */
  open(remote: Remote, resolved: Resolved, signal: AbortSignal): Promise<TreeReader>;
  /** A reader on a commit the mirror already has, without any contact with the remote; undefined when it has not. */
  openCached(remote: Remote, commit: string, signal: AbortSignal): Promise<TreeReader | undefined>;
  /** Says which remotes are still named by an object; others are removed after a grace. */
  retain(remotes: Iterable<Pick<Remote, 'url' | 'credential'>>): void;
  /** Stops child processes and removes temporary files. */
  close(): Promise<void>;
}

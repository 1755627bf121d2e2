/** The node of a cluster that was started with one, and what its pods need. Everything it names can be reached from pods and from the tests. */
export interface NodeInfo {
  /** Name of the Node object. */
  name: string;
  /** The node's own address. */
  address: string;
  /**
   * Address of this machine as pods see it. API server, S3, Git and registries listen on it (`kubeconfig`, `s3.endpoint`, `git.*Url` name
   * it), and so must whatever a test starts for pods. Nothing else outside the cluster can be reached from pods.
   */
  hostAddress: string;
  /** Ranges of pod and Service addresses; this machine reaches both. */
  podRange: string;
  serviceRange: string;
  /** Where pods ask for names; nobody answers there until a test starts a name server. */
  dnsAddress: string;
  /** Where built images go: refuses everything without the credential, allows deletes, speaks plain http. */
  registry: {
    /** `<host>:<port>`. */
    address: string;
    insecure: true;
    username: string;
    password: string;
    /** Text of a `.dockerconfigjson` with that credential. */
    pushSecret: string;
  };
  /** Where base images come from: pull and push without credentials, plain http. */
  baseRegistry: { address: string; insecure: true };
  /** Images in `baseRegistry`, as `<host>:<port>/<repository>@sha256:<hex>`. */
  images: {
    /** Static busybox with its commands as links, `/etc/passwd` and `/tmp`; runs `sh`. */
    busybox: string;
    /** Kaniko 1.24; the entry point is `/kaniko/executor`. */
    kaniko: string;
  };
}

/** What a started test cluster offers; plain data, handed to test workers with Vitest's `provide`. */
export interface ClusterInfo {
  /** Directory of this run: logs, pids, data. Removed on stop. */
  runDir: string;
  /** Path of a kubeconfig with cluster-admin. */
  kubeconfig: string;
  /** JSON lines of every write to the API (level Metadata); undefined when the API server is not ours. */
  auditLog?: string;
  s3: { endpoint: string; accessKey: string; secretKey: string; region: string };
  git: {
    /** Directory of the bare repositories served; tests create `<root>/<name>.git` below it. */
    root: string;
    /** `http://127.0.0.1:<port>/pub`: no credentials asked. */
    httpUrl: string;
    /** `http://127.0.0.1:<port>/private`: basic `username`/`password`, or bearer `bearerToken`. */
    privateUrl: string;
    /** `https://127.0.0.1:<port>/pub` with a certificate of `caCert`. */
    httpsUrl: string;
    caCert: string;
    username: string;
    password: string;
    bearerToken: string;
    /** `ssh://<user>@127.0.0.1:<port><root>`: append `/<name>.git`. */
    sshUrl: string;
    /** Private key (OpenSSH PEM) that sshd accepts, and the matching known_hosts text. */
    sshIdentity: string;
    sshKnownHosts: string;
    /**
     * File with one line per request over http(s), written before the answer: `<service> <path>`. The service is `info/refs`
     * (begins every ls-remote and fetch), `ls-refs` or `fetch` (protocol version 2), `upload-pack` (older protocols), `unauthorized`,
     * `silent`, `redirect` or `status`; the path is that of the repository, like `/pub/<name>.git`, for the last three the whole path.
     * The same host also serves `/silent/…` (never answers), `/redirect/…` (302 to `/pub/…` under the name localhost) and
     * `/status/<code>/…` (answers that code; 429 and 503 with `Retry-After: 1`).
     */
    accessLog: string;
  };
  /** Present when the cluster was asked for with a node and this machine can run one. */
  node?: NodeInfo;
}

declare module 'vitest' {
  export interface ProvidedContext {
    cluster: ClusterInfo;
  }
}

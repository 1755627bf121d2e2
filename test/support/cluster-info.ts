/** What a started test cluster offers; plain data, handed to test workers with Vitest's `provide`. */
export interface ClusterInfo {
  /** Directory of this run: logs, pids, data. Removed on stop. */
  runDir: string;
  /** Path of a kubeconfig with cluster-admin. */
  kubeconfig: string;
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
    /** File with one line per Git request served over http(s): `<service> <path>`. */
    accessLog: string;
  };
}

declare module 'vitest' {
  export interface ProvidedContext {
    cluster: ClusterInfo;
  }
}

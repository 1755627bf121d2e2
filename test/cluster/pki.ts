import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execOk } from './exec.ts';

const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
const DAYS = ['-days', '30'];

/** A certificate authority of one run: `<name>-ca.crt` and `<name>-ca.key` in `dir`. */
export interface Authority {
  cert: string;
  key: string;
}

/** Creates an authority. */
export async function createAuthority(dir: string, name: string, signal: AbortSignal): Promise<Authority> {
  const cert = join(dir, `${name}-ca.crt`);
  const key = join(dir, `${name}-ca.key`);
  const subject = ['-subj', `/CN=${name}-test-ca`];
  await execOk('openssl', ['req', '-x509', ...NEW_KEY, ...DAYS, ...subject, '-keyout', key, '-out', cert], { signal });
  return { cert, key };
}

interface CertRequest {
  dir: string;
  name: string;
  authority: Authority;
  /** Distinguished name; default `/CN=<name>`. */
  subject?: string;
}

interface ServerCert extends CertRequest {
  /** Like `IP:127.0.0.1` or `DNS:localhost`. */
  names: readonly string[];
}

async function sign(request: CertRequest, extensions: string, signal: AbortSignal): Promise<Authority> {
  const { dir, name, authority, subject = `/CN=${name}` } = request;
  const file = (suffix: string) => join(dir, `${name}.${suffix}`);
  writeFileSync(file('ext'), extensions);
  await execOk('openssl', ['req', ...NEW_KEY, '-subj', subject, '-keyout', file('key'), '-out', file('csr')], {
    signal,
  });
  const signing = ['-CA', authority.cert, '-CAkey', authority.key, '-CAcreateserial', '-extfile', file('ext')];
  await execOk('openssl', ['x509', '-req', '-in', file('csr'), ...signing, ...DAYS, '-out', file('crt')], { signal });
  return { cert: file('crt'), key: file('key') };
}

/** Creates a serving certificate; returns the paths of `<name>.crt` and `<name>.key`. */
export async function createServerCert(request: ServerCert, signal: AbortSignal): Promise<Authority> {
  return await sign(request, `subjectAltName=${request.names.join(',')}\nextendedKeyUsage=serverAuth\n`, signal);
}

/** Creates a certificate for a client that shows it to a server; returns the paths of `<name>.crt` and `<name>.key`. */
export async function createClientCert(request: CertRequest, signal: AbortSignal): Promise<Authority> {
  return await sign(request, 'extendedKeyUsage=clientAuth\n', signal);
}

import { waiting } from '../base/errors.ts';
import { holdSecret } from '../base/redact.ts';
import type { KubeObject } from '../kube/types.ts';

/** A core/v1 Secret as the API sends it. */
export interface TokenSecret extends KubeObject {
  data?: Record<string, string>;
}

const KEY = 'token';
/** Anyone who sees one signed delivery can try short tokens at leisure. */
const MIN_LENGTH = 16;
const MAX_LENGTH = 4096;

/**
 * The webhook token in a Secret (key `token`, without the final newline that editors leave), registered with the redactor.
 * Waiting SecretInvalid when the key is missing, shorter than 16 or longer than 4096 characters.
 */
export function tokenOf(secret: TokenSecret): string {
  const { name, namespace } = secret.metadata;
  const token = Buffer.from(secret.data?.[KEY] ?? '', 'base64')
    .toString('utf8')
    .replace(/[\r\n]+$/, '');
  holdSecret(token);
  if (token.length >= MIN_LENGTH && token.length <= MAX_LENGTH) return token;
  const what =
    token === '' ? `has no key "${KEY}"` : `has a "${KEY}" that is not ${MIN_LENGTH} to ${MAX_LENGTH} characters long`;
  throw waiting(
    'SecretInvalid',
    `Secret "${name}" ${what}, so webhook deliveries are refused; ${commandFor(namespace ?? '', name)} makes one, and the Git host gets the same token`,
  );
}

/** The command that makes such a Secret. */
export const commandFor = (namespace: string, name: string): string =>
  `kubectl -n ${namespace} create secret generic ${name} --from-literal=${KEY}="$(openssl rand -hex 32)"`;

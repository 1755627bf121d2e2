const OPENSSH_MAGIC = 'openssh-key-v1\0';

/** Reads the cipher's name from an OpenSSH private key: magic, then a length-prefixed string. */
function opensshCipher(pem: string): string | undefined {
  const body = /-----BEGIN OPENSSH PRIVATE KEY-----([\s\S]+?)-----END OPENSSH PRIVATE KEY-----/.exec(pem)?.[1];
  if (body === undefined) return undefined;
  const bytes = Buffer.from(body.replaceAll(/\s/g, ''), 'base64');
  if (bytes.length < OPENSSH_MAGIC.length + 4 || bytes.toString('latin1', 0, OPENSSH_MAGIC.length) !== OPENSSH_MAGIC)
    return undefined;
  const length = bytes.readUInt32BE(OPENSSH_MAGIC.length);
  const start = OPENSSH_MAGIC.length + 4;
  return bytes.toString('latin1', start, Math.min(start + length, start + 64));
}

/**
 * Why ssh could not use this private key without asking, or undefined; the text continues "identity in the Secret …".
 * Looks at the envelope alone, so a damaged key inside a sound envelope is found by ssh.
 */
export function keyProblem(pem: string): string | undefined {
  const encrypted = 'is protected by a passphrase: store it without one ("ssh-keygen -p" with an empty new passphrase)';
  const guard = /-----BEGIN ([A-Z ]*)PRIVATE KEY-----/.exec(pem)?.[1];
  if (guard === undefined)
    return 'is no private key in PEM or OpenSSH form: store the file that ssh-keygen wrote, not the .pub file';
  if (!pem.includes(`-----END ${guard}PRIVATE KEY-----`)) return 'ends early: store the whole file with its last line';
  if (guard === 'ENCRYPTED ' || /^Proc-Type:.*ENCRYPTED/m.test(pem)) return encrypted;
  if (guard !== 'OPENSSH ') return undefined;
  const cipher = opensshCipher(pem);
  if (cipher === undefined) return 'is a damaged OpenSSH key: store the file again, with its line breaks';
  return cipher === 'none' ? undefined : encrypted;
}

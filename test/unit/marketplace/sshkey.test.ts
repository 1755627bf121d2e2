import { expect, test } from 'vitest';
import { keyProblem } from '../../../src/marketplace/sshkey.ts';

const guard = (kind: string, body: string) =>
  `-----BEGIN ${kind}PRIVATE KEY-----\n${body}\n-----END ${kind}PRIVATE KEY-----\n`;
const openssh = (cipher: string) => {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(cipher.length);
  const bytes = Buffer.concat([Buffer.from('openssh-key-v1\0'), length, Buffer.from(cipher), Buffer.alloc(60)]);
  return guard('OPENSSH ', bytes.toString('base64').replaceAll(/(.{70})/g, '$1\n'));
};

test.each([
  ['an OpenSSH key', openssh('none'), undefined],
  ['a PKCS#8 key', guard('', 'AAAA'), undefined],
  ['an RSA key', guard('RSA ', 'AAAA'), undefined],
  ['an encrypted OpenSSH key', openssh('aes256-ctr'), 'is protected by a passphrase'],
  ['an encrypted PKCS#8 key', guard('ENCRYPTED ', 'AAAA'), 'is protected by a passphrase'],
  ['an encrypted RSA key', guard('RSA ', 'Proc-Type: 4,ENCRYPTED\n\nAAAA'), 'is protected by a passphrase'],
  ['a public key', 'ssh-ed25519 AAAA me@host', 'is no private key'],
  ['nothing', '', 'is no private key'],
  ['a key that is cut off', openssh('none').slice(0, 90), 'ends early'],
  ['a key of other content', guard('OPENSSH ', 'AAAA'), 'is a damaged OpenSSH key'],
])('%s', (_what, pem, problem) => {
  if (problem === undefined) expect(keyProblem(pem)).toBeUndefined();
  else expect(keyProblem(pem)).toContain(problem);
});

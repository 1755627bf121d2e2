import { createHmac } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { describe, expect, test } from 'vitest';
import { checkOf, decoy } from '../../../src/webhook/check.ts';
import { claimOf } from '../../../src/webhook/claim.ts';

const NOW = 1_700_000_000;
const TOKEN = 'a-token-of-some-length';
const BODY = '{"ref":"refs/heads/main"}';
const mac = (text: string, key: string | Buffer = TOKEN, encoding: 'hex' | 'base64' = 'hex') =>
  createHmac('sha256', key).update(text).digest(encoding);

/** Whether a delivery is believed; the body arrives in two pieces. */
function believed(headers: IncomingHttpHeaders, body: string, token: string, now = NOW): boolean {
  const check = checkOf(claimOf(headers).proofs, token, now);
  const bytes = Buffer.from(body);
  check.update(bytes.subarray(0, 3));
  check.update(bytes.subarray(3));
  return check.holds();
}

/** Examples that the hosts publish. */
const PUBLISHED: [title: string, headers: IncomingHttpHeaders, body: string, token: string, now?: number][] = [
  [
    'GitHub, docs "Validating webhook deliveries"',
    {
      'x-github-event': 'push',
      'x-hub-signature-256': 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17',
    },
    'Hello, World!',
    "It's a Secret to Everybody",
  ],
  [
    'Bitbucket, docs "Manage webhooks"',
    {
      'x-event-key': 'repo:push',
      'x-hub-signature': 'sha256=a4771c39fbe90f317c7824e83ddef3caae9cb3d976c214ace1f2937e133263c9',
    },
    'Hello World!',
    "It's a Secret to Everybody",
  ],
  [
    'GitLab with a signing token, test vector of Standard Webhooks',
    {
      'x-gitlab-event': 'Push Hook',
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    },
    '{"test": 2432232314}',
    'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
    1_614_265_330,
  ],
  [
    'Gitea, bare hex: RFC 4231, test case 2',
    {
      'x-gitea-event': 'push',
      'x-gitea-signature': '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
    },
    'what do ya want for nothing?',
    'Jefe',
  ],
];

describe('published examples', () => {
  test.each(PUBLISHED)('%s', (_title, headers, body, token, now = NOW) => {
    expect(believed(headers, body, token, now)).toBe(true);
    expect(believed(headers, `${body} `, token, now)).toBe(false);
    expect(believed(headers, body, `${token}BBBB`, now)).toBe(false);
  });
});

const github = { 'x-github-event': 'push' };
const gitlab = { 'x-gitlab-event': 'Push Hook' };
const standardKey = Buffer.from('0123456789abcdef0123456789abcdef');
const WHSEC = `whsec_${standardKey.toString('base64')}`;
const standard = (at: number, id = 'msg_1', key = standardKey) => ({
  'webhook-id': id,
  'webhook-timestamp': String(at),
  'webhook-signature': `v1,${mac(`${id}.${at}.${BODY}`, key, 'base64')}`,
});
const timed = (at: number) => ({
  'x-signature': `sha256=${mac(`${at}.${BODY}`)}`,
  'x-signature-timestamp': String(at),
});

const PROOFS: [title: string, expected: boolean, headers: IncomingHttpHeaders, token?: string][] = [
  ['no header at all', false, {}],
  ['GitHub', true, { ...github, 'x-hub-signature-256': `sha256=${mac(BODY)}` }],
  ['GitHub, upper-case digits', true, { ...github, 'x-hub-signature-256': `sha256=${mac(BODY).toUpperCase()}` }],
  ['GitHub without the prefix', false, { ...github, 'x-hub-signature-256': mac(BODY) }],
  [
    'GitHub with the old SHA-1 alone',
    false,
    { ...github, 'x-hub-signature': 'sha1=0123456789012345678901234567890123456789' },
  ],
  [
    'GitHub with two signatures joined',
    false,
    { ...github, 'x-hub-signature-256': `sha256=${mac(BODY)}, sha256=${mac(BODY)}` },
  ],
  ['GitHub, cut short', false, { ...github, 'x-hub-signature-256': `sha256=${mac(BODY).slice(0, 62)}` }],
  ['GitHub, empty', false, { ...github, 'x-hub-signature-256': 'sha256=' }],
  ['Forgejo', true, { 'x-forgejo-event': 'push', 'x-forgejo-signature': mac(BODY) }],
  ['Forgejo that sends the header of Gitea', true, { 'x-forgejo-event': 'push', 'x-gitea-signature': mac(BODY) }],
  [
    'Forgejo whose own signature is wrong is not rescued by that of Gitea',
    false,
    { 'x-forgejo-event': 'push', 'x-forgejo-signature': mac('other'), 'x-gitea-signature': mac(BODY) },
  ],
  [
    'Gitea, which also sends the headers of GitHub',
    true,
    { 'x-gitea-event': 'push', ...github, 'x-gitea-signature': mac(BODY), 'x-hub-signature-256': 'sha256=00' },
  ],
  ['GitLab with a secret token', true, { ...gitlab, 'x-gitlab-token': TOKEN }],
  ['GitLab with another', false, { ...gitlab, 'x-gitlab-token': `${TOKEN}x` }],
  ['GitLab with an empty one', false, { ...gitlab, 'x-gitlab-token': '' }],
  ['the token of GitLab from somebody else', false, { ...github, 'x-gitlab-token': TOKEN }],
  ['GitLab with a signing token', true, { ...gitlab, ...standard(NOW) }, WHSEC],
  [
    'GitLab with both, and the Secret has the signing token',
    true,
    { ...gitlab, ...standard(NOW), 'x-gitlab-token': 'x' },
    WHSEC,
  ],
  [
    'GitLab with both, and the Secret has the secret token',
    true,
    { ...gitlab, ...standard(NOW), 'x-gitlab-token': TOKEN },
  ],
  ['a signing token, another body id', false, { ...gitlab, ...standard(NOW), 'webhook-id': 'msg_2' }, WHSEC],
  ['a signing token, five minutes ago', true, { ...gitlab, ...standard(NOW - 300) }, WHSEC],
  ['a signing token, replayed later', false, { ...gitlab, ...standard(NOW - 301) }, WHSEC],
  ['a signing token, from the future', false, { ...gitlab, ...standard(NOW + 301) }, WHSEC],
  [
    'a signing token that is being rotated: one of two signatures fits',
    true,
    {
      ...gitlab,
      ...standard(NOW),
      'webhook-signature': `v1,${mac('x', 'y', 'base64')} ${standard(NOW)['webhook-signature']}`,
    },
    WHSEC,
  ],
  ['an empty signing key', false, { ...gitlab, ...standard(NOW, 'msg_1', Buffer.alloc(0)) }, 'whsec_'],
  ['generic', true, { 'x-signature': `sha256=${mac(BODY)}` }],
  ['generic by Standard Webhooks', true, standard(NOW), WHSEC],
  ['generic without the prefix', false, { 'x-signature': mac(BODY) }],
  ['generic with a time', true, timed(NOW - 299)],
  ['generic with an old time', false, timed(NOW - 301)],
  ['generic with the time taken away', false, { 'x-signature': timed(NOW)['x-signature'] }],
  ['generic with another time', false, { ...timed(NOW - 400), 'x-signature-timestamp': String(NOW) }],
  [
    'generic with a time that is none',
    false,
    { 'x-signature': `sha256=${mac(`now.${BODY}`)}`, 'x-signature-timestamp': 'now' },
  ],
  ['generic with an empty time', false, { 'x-signature': `sha256=${mac(BODY)}`, 'x-signature-timestamp': '' }],
];

test.each(PROOFS)('%s: %s', (_title, expected, headers, token = TOKEN) => {
  expect(believed(headers, BODY, token)).toBe(expected);
});

test('the decoy never holds', () => {
  const check = decoy();
  check.update(Buffer.from(BODY));
  expect(check.holds()).toBe(false);
});

test.each<[IncomingHttpHeaders, string]>([
  [{ 'x-github-event': 'push' }, 'github push'],
  [{ 'x-github-event': 'create' }, 'github push'],
  [{ 'x-github-event': 'delete' }, 'github push'],
  [{ 'x-github-event': 'ping' }, 'github ping'],
  [{ 'x-github-event': 'issues' }, 'github other'],
  [{ 'x-github-event': '' }, 'github other'],
  [{ 'x-gitea-event': 'push', 'x-github-event': 'push' }, 'gitea push'],
  [{ 'x-forgejo-event': 'create', 'x-gitea-event': 'create', 'x-github-event': 'create' }, 'forgejo push'],
  [{ 'x-gitlab-event': 'Push Hook' }, 'gitlab push'],
  [{ 'x-gitlab-event': 'Tag Push Hook' }, 'gitlab push'],
  [{ 'x-gitlab-event': 'Merge Request Hook' }, 'gitlab other'],
  [{ 'x-event-key': 'repo:push' }, 'bitbucket push'],
  [{ 'x-event-key': 'repo:refs_changed' }, 'bitbucket push'],
  [{ 'x-event-key': 'diagnostics:ping' }, 'bitbucket ping'],
  [{}, 'generic push'],
])('%j is %s', (headers, expected) => {
  const { host, event } = claimOf(headers);
  expect(`${host} ${event}`).toBe(expected);
});

test('names and ids for the log are short and printable, whatever was sent', () => {
  const claim = claimOf({
    'x-github-event': `a\u0000\u001b[31m${'é'.repeat(100)}`,
    'x-github-delivery': 'not an id\n',
  });
  expect(claim.eventName).toMatch(/^[\x20-\x7e]{64}$/);
  expect(claim.delivery).toBeUndefined();
  expect(claimOf({ ...github, 'x-github-delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0958' }).delivery).toBe(
    '72d3162e-cc78-11e3-81ab-4c9367dc0958',
  );
});

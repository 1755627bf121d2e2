import { createHash } from 'node:crypto';
import { chmod, cp, readdir, readFile, symlink, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { PackResult } from '../../../src/cli/pack.ts';
import { examples, git, skillctl, skillctlSource, spawnProgram, temporaryDirectory, writeTree } from './helpers.ts';

const OCR = 'plugins/media/skills/scanned-pdf-text';
const CSV = 'plugins/data/skills/csv-aggregator';

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

test('prints digest, version, files and bytes, and writes what it says', async () => {
  await using temporary = await temporaryDirectory();
  const target = join(temporary.path, 'csv.tar');
  const { code, out } = await skillctl(examples, 'pack', CSV, '-o', target, '--output', 'json');
  expect(code).toBe(0);
  const packed = JSON.parse(out) as PackResult;
  const bytes = await readFile(target);
  expect(packed).toMatchObject({
    name: 'csv-aggregator',
    runtime: 'cubesandbox::python',
    files: 6,
    leftOut: ['.skillenv'],
  });
  expect(packed.version).toBe(packed.digest.slice(0, 12));
  expect(packed.tar).toEqual({ path: target, size: bytes.length, sha256: sha256(bytes) });
  const human = await skillctl(examples, 'pack', CSV, '-o', target);
  expect(human.out.replaceAll(/[0-9a-f]{12,64}/g, '<hex>').replace(temporary.path, '<tmp>')).toMatchInlineSnapshot(`
    "skill     csv-aggregator (cubesandbox::python)
    digest    <hex>
    version   <hex>
    files     6, 7271 bytes
    written   <tmp>/csv.tar, 12288 bytes, sha256 <hex>
    left out  .skillenv (kept apart by the operator)
    "
  `);

  const listing = await spawnProgram('tar', ['-tf', target], { cwd: temporary.path });
  expect(listing.out.trim().split('\n')).toEqual([
    'SKILL.md',
    'assets/logo.png',
    'assets/report-template.md',
    'references/column-mapping.md',
    'scripts/main.py',
  ]);
  expect(await readdir(temporary.path)).toEqual(['csv.tar']);
});

test('the digest is the one that validate shows', async () => {
  await using temporary = await temporaryDirectory();
  const packed = await skillctl(examples, 'pack', OCR, '-o', join(temporary.path, 'a.tar'), '--output', 'json');
  const validated = await skillctl(examples, 'validate', '--output', 'json', OCR);
  expect(JSON.parse(packed.out).digest).toBe(JSON.parse(validated.out).skills[0].digest);
});

test('umask, time zone, locale, file times and the place do not change a byte', async () => {
  await using temporary = await temporaryDirectory();
  const origin = join(temporary.path, 'origin');
  await cp(join(examples, OCR), join(origin, OCR), { recursive: true });
  await git(origin, 'init', '-q');
  await git(origin, 'add', '.');
  await git(origin, 'commit', '-q', '-m', 'one');
  const clones = [
    { name: 'a', umask: '000', env: { TZ: 'Asia/Kathmandu', LC_ALL: 'C' } },
    { name: 'b', umask: '077', env: { TZ: 'America/New_York', LC_ALL: 'de_DE.UTF-8' } },
  ];
  const outcomes: { digest: string; tar: string }[] = [];
  for (const { name, umask, env } of clones) {
    const work = join(temporary.path, name);
    const target = join(temporary.path, `${name}.tar`);
    // The umask belongs to the process, so each clone and each pack runs in a child of its own.
    const script = 'umask "$1"; git clone -q "$2" "$3"; shift 3; exec "$@"';
    const command = [process.execPath, skillctlSource, 'pack', join(work, OCR), '-o', target, '--output', 'json'];
    const args = ['-c', script, 'sh', umask, origin, work, ...command];
    const { code, out, err } = await spawnProgram('sh', args, { cwd: temporary.path, env });
    expect({ code, err }).toEqual({ code: 0, err: expect.stringContaining("is read from Git's index") });
    outcomes.push({ digest: JSON.parse(out).digest, tar: sha256(await readFile(target)) });
  }
  expect(outcomes[0]).toEqual(outcomes[1]);

  // The same files outside of Git, with the same executable bit.
  const loose = join(temporary.path, 'loose/scanned-pdf-text');
  await cp(join(examples, OCR), loose, { recursive: true });
  await chmod(join(loose, 'SKILL.md'), 0o600);
  await chmod(join(loose, 'scripts/ocr.sh'), 0o711);
  await utimes(join(loose, 'SKILL.md'), 1, 1);
  const target = join(temporary.path, 'loose.tar');
  const outside = await skillctl(temporary.path, 'pack', loose, '-o', target, '--output', 'json');
  expect(outside.err).toContain('has no files tracked by Git: all files, modes from disk');
  expect({ digest: JSON.parse(outside.out).digest, tar: sha256(await readFile(target)) }).toEqual(outcomes[0]);

  await chmod(join(loose, 'scripts/ocr.sh'), 0o644);
  const other = await skillctl(temporary.path, 'pack', loose, '-o', target, '--output', 'json');
  expect(JSON.parse(other.out).digest).not.toBe(outcomes[0]?.digest);
});

test('an invalid skill is reported and nothing is written', async () => {
  await using temporary = await temporaryDirectory();
  const target = join(temporary.path, 'x.tar');
  const { code, out, err } = await skillctl(examples, 'pack', 'plugins/media/skills/image-contact-sheet', '-o', target);
  expect(code).toBe(1);
  expect(out).toBe('');
  expect(err).toContain('PlaceholderUnknown');
  expect(await readdir(temporary.path)).toEqual([]);
});

test('what cannot be packed or written ends with 2 and a way out', async () => {
  await using temporary = await temporaryDirectory();
  await writeTree(temporary.path, { 'taken/file': 'x' });
  await symlink('taken/file', join(temporary.path, 'link'));
  const cases: [string[], RegExp][] = [
    [['pack', '.', '-o', join(temporary.path, 'x.tar')], /marketplace; name one skill/],
    [['pack', 'plugins/data', '-o', join(temporary.path, 'x.tar')], /plugin; name one skill/],
    [['pack', temporary.path, '-o', join(temporary.path, 'x.tar')], /no skill; name one skill/],
    [['pack', OCR, '-o', join(temporary.path, 'taken')], /is a directory; name a file after -o/],
    [['pack', OCR, '-o', join(temporary.path, 'missing/x.tar')], /ENOENT.*existing, writable directory/],
    [['pack', OCR, '-o', join(temporary.path, 'link')], /is not a regular file; name a file after -o/],
    [['pack', OCR, '-o', join(temporary.path, 'x'.repeat(300))], /ENAMETOOLONG/],
    [['pack', OCR], /required option '-o <file>'/],
  ];
  for (const [args, message] of cases) {
    const { code, out, err } = await skillctl(examples, ...args);
    expect({ code, out }, args.join(' ')).toEqual({ code: 2, out: '' });
    expect(err).toMatch(message);
  }
  expect(await readdir(temporary.path)).toEqual(['link', 'taken']);
});

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Frontmatter, PackageFile } from '../../../src/protocol/types.ts';
import { buildPackage, versionOf } from '../../../src/store/package.ts';
import { packageFile as file, frontmatter } from '../../contract/store/samples.ts';

const sha = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

const FILES: PackageFile[] = [
  file('SKILL.md', '---\nname: pdf\ndescription: Reads PDF files.\n---\nBody\n'),
  file('.skillenv', 'TOKEN=\nREGION=eu-1\n'),
  file('.cubesandbox.dockerfile', 'FROM python:3.12\n'),
  file('assets/logo.png', new Uint8Array([0x89, 0x50, 0, 1, 2])),
  file('references/A.md', 'a'),
  file('references/b.md', 'b'),
  file('scripts/run.sh', '#!/bin/sh\n', '0755'),
  file('docs/.skillenv', 'a nested file of that name is an ordinary one'),
];
const build = (files = FILES, front: Frontmatter = frontmatter) => buildPackage({ frontmatter: front, files });

describe('buildPackage', () => {
  test('the digest of a known package never changes', () => {
    const built = build();
    expect({ digest: built.digest, tar: built.manifest.tar, manifest: built.manifestSHA256 }).toMatchInlineSnapshot(`
      {
        "digest": "21086e4141b16e313944a797351a21df466e765f65a0c333d804cab35e2745ce",
        "manifest": "6ce2ee64d58fcba76ec540cab976b43e3bcaba4d0a79bb8af68a3b99dec8f46c",
        "tar": {
          "sha256": "b1dfb560f4e89a48cb8536232b165ebfa1c0f8e2c1a5be0a3c593280eaccab1d",
          "size": 7168,
        },
      }
    `);
    expect(versionOf(built.digest)).toBe(built.digest.slice(0, 12));
  });

  test('the digest is the sha256 of the listing that the design describes', () => {
    const listing = [...FILES]
      .sort((a, b) => Buffer.compare(Buffer.from(a.path), Buffer.from(b.path)))
      .map((f) => `${f.mode} ${Buffer.byteLength(f.path)}:${f.path} ${sha(f.content)}\n`);
    expect(build().digest).toBe(sha(Buffer.from(`skill-package/v1\n${listing.join('')}`)));
  });

  test('SKILL.md comes first, then paths in byte order, without the three private root files', () => {
    expect(build().manifest.files.map((f) => f.path)).toMatchInlineSnapshot(`
      [
        "SKILL.md",
        "assets/logo.png",
        "docs/.skillenv",
        "references/A.md",
        "references/b.md",
        "scripts/run.sh",
      ]
    `);
  });

  test('private parts hold the bytes, the manifest their place, size and hash', () => {
    const { privateParts, manifest } = build();
    expect(Object.keys(privateParts).sort()).toEqual(['Dockerfile', 'skillenv']);
    for (const [name, bytes] of Object.entries(privateParts)) {
      expect(manifest.private[name]).toMatchObject({ size: bytes.length, sha256: sha(bytes), mode: '0644' });
    }
    expect(manifest.private.Dockerfile?.path).toBe('.cubesandbox.dockerfile');
    expect(
      build([...FILES.filter((f) => !f.path.startsWith('.cube')), file('.e2b.dockerfile', 'FROM x')]).manifest.private
        .Dockerfile?.path,
    ).toBe('.e2b.dockerfile');
  });

  test('no byte of a private file is in the tar or the manifest', () => {
    const { tar, manifestBytes } = build();
    for (const secret of ['REGION=eu-1', 'FROM python']) {
      expect(Buffer.from(tar).includes(secret)).toBe(false);
      expect(Buffer.from(manifestBytes).includes(secret)).toBe(false);
    }
  });

  test('counts cover all files, private ones too', () => {
    const built = build();
    expect(built.fileCount).toBe(FILES.length);
    expect(built.byteCount).toBe(FILES.reduce((n, f) => n + f.content.length, 0));
  });

  test('the manifest is the JSON of its bytes, and its hashes and offsets lead to every file', () => {
    const { manifest, manifestBytes, manifestSHA256, tar } = build();
    expect(JSON.parse(Buffer.from(manifestBytes).toString())).toEqual(manifest);
    expect(manifestSHA256).toBe(sha(manifestBytes));
    expect(manifest.tar).toEqual({ sha256: sha(tar), size: tar.length });
    for (const f of manifest.files) expect(sha(tar.subarray(f.offset, f.offset + f.size)), f.path).toBe(f.sha256);
  });

  test('the order of files and of the frontmatter keys changes no byte', () => {
    const want = build();
    const reversedFront = Object.fromEntries(Object.entries(frontmatter).reverse()) as unknown as Frontmatter;
    fc.assert(
      fc.property(fc.shuffledSubarray(FILES, { minLength: FILES.length }), (files) => {
        const got = build(files, reversedFront);
        expect(got.digest).toBe(want.digest);
        expect(Buffer.compare(got.tar, want.tar)).toBe(0);
        expect(Buffer.compare(got.manifestBytes, want.manifestBytes)).toBe(0);
      }),
      { numRuns: 30 },
    );
  });

  const CHANGES: Record<string, (one: PackageFile, at: number) => PackageFile[]> = {
    mode: (one) => [{ ...one, mode: one.mode === '0644' ? '0755' : '0644' }],
    path: (one) => [{ ...one, path: `${one.path}x` }],
    byte: (one, at) => [{ ...one, content: one.content.map((b, i) => (i === at % one.content.length ? b ^ 1 : b)) }],
    append: (one) => [{ ...one, content: Buffer.concat([one.content, Buffer.of(0)]) }],
    drop: () => [],
  };

  test('any change of a mode, a path or a byte changes the digest', () => {
    const want = build().digest;
    // SKILL.md stands first and keeps its path: without it there is no package.
    const drawn = fc.tuple(
      fc.integer({ min: 1, max: FILES.length - 1 }),
      fc.constantFrom(...Object.keys(CHANGES)),
      fc.nat(),
    );
    fc.assert(
      fc.property(drawn, ([index, kind, at]) => {
        const changed = CHANGES[kind]?.(FILES[index] as PackageFile, at) ?? [];
        expect(build(FILES.toSpliced(index, 1, ...changed)).digest).not.toBe(want);
      }),
    );
  });

  test('two listings that look alike as text have different digests', () => {
    const skill = FILES[0] as PackageFile;
    const a = build([skill, file('a 1:b', 'x')]);
    const b = build([skill, file('a', 'x'), file('b', 'x')]);
    expect(a.digest).not.toBe(b.digest);
  });

  test('paths above U+FFFF sort by their UTF-8 bytes, unlike JavaScript strings', () => {
    const built = build([FILES[0] as PackageFile, file('\u{10000}', 'x'), file('\uFFFD', 'x')]);
    expect(built.manifest.files.map((f) => f.path)).toEqual(['SKILL.md', '\uFFFD', '\u{10000}']);
  });

  test('time zone, locale and umask change no byte', { timeout: 30_000 }, () => {
    const script = `
      process.umask(Number(process.env.MASK));
      const { buildPackage } = await import('./src/store/package.ts');
      const files = JSON.parse(process.env.FILES).map((f) => ({ ...f, content: Buffer.from(f.content, 'base64') }));
      const built = buildPackage({ frontmatter: JSON.parse(process.env.FRONT), files });
      process.stdout.write(built.digest + built.manifest.tar.sha256 + built.manifestSHA256);`;
    const run = (env: Record<string, string>) =>
      execFileSync(process.execPath, ['--input-type=module', '-e', script], {
        env: {
          ...env,
          FILES: JSON.stringify(FILES.map((f) => ({ ...f, content: Buffer.from(f.content).toString('base64') }))),
          FRONT: JSON.stringify(frontmatter),
        },
      }).toString();
    const { digest, manifest, manifestSHA256 } = build();
    const want = digest + manifest.tar.sha256 + manifestSHA256;
    expect(run({ TZ: 'Pacific/Kiritimati', LC_ALL: 'tr_TR.UTF-8', MASK: '63' })).toBe(want);
    expect(run({ TZ: 'UTC', LC_ALL: 'C', MASK: '0' })).toBe(want);
  });

  test.each([
    [FILES.slice(1), 'a package without SKILL.md cannot be built; validate the skill first'],
    [[...FILES, file('references/A.md', 'again')], 'references/A.md stands twice in one package'],
    [
      [...FILES, file('.e2b.dockerfile', 'FROM y')],
      '.cubesandbox.dockerfile and .e2b.dockerfile cannot stand in one package',
    ],
  ])('input that validation cannot have passed is refused (%#)', (files, message) => {
    expect(() => build(files)).toThrow(expect.objectContaining({ reason: 'InternalError', message }));
  });
});

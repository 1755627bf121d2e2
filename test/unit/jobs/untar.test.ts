import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { EXIT } from '../../../src/build/exits.ts';
import { JobError } from '../../../src/jobs/failure.ts';
import { readPackageTar } from '../../../src/jobs/untar.ts';
import { type TarEntry, writeTar } from '../../../src/store/tar.ts';

const entry = (path: string, text = 'x', mode: TarEntry['mode'] = '0644'): TarEntry => ({
  path,
  mode,
  content: Buffer.from(text),
});
const tarOf = (...entries: TarEntry[]) => Buffer.from(writeTar(entries).tar);

/** Changes a header and mends its checksum. */
function forge(tar: Buffer, change: (header: Buffer) => void, at = 0): Buffer {
  const header = tar.subarray(at, at + 512);
  change(header);
  header.fill(' ', 148, 156);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return tar;
}

const setName = (name: string) => (header: Buffer) => {
  header.fill(0, 0, 100);
  header.write(name, 0);
};
const setType = (type: string) => (header: Buffer) => header.write(type, 156);

describe('readPackageTar', () => {
  test('reads what the store writes', () => {
    const long = `${'d'.repeat(200)}/${'ä'.repeat(60)}.md`;
    const files = readPackageTar(tarOf(entry('SKILL.md', 'hello'), entry('a/b.sh', '', '0755'), entry(long, 'long')));
    expect(files.map(({ path, mode, content }) => [path, mode, Buffer.from(content).toString()])).toEqual([
      ['SKILL.md', 0o644, 'hello'],
      ['a/b.sh', 0o755, ''],
      [long, 0o644, 'long'],
    ]);
  });

  const two = tarOf(entry('a'), entry('b'));
  test.each<[string, Buffer]>([
    ['an empty file', Buffer.alloc(0)],
    ['half an archive', two.subarray(0, 700)],
    ['an archive without its end', two.subarray(0, two.length - 1024)],
    ['something behind the end', Buffer.concat([two, Buffer.alloc(512)])],
    [
      'a broken checksum',
      (() => {
        const tar = tarOf(entry('a'));
        tar[0] = 0x62;
        return tar;
      })(),
    ],
    ['another format', forge(tarOf(entry('a')), (header) => header.write('ustaX', 257))],
    ['a symbolic link', forge(tarOf(entry('a')), setType('2'))],
    ['a hard link', forge(tarOf(entry('a')), setType('1'))],
    ['a device', forge(tarOf(entry('a')), setType('3'))],
    ['a directory', forge(tarOf(entry('a')), setType('5'))],
    ['a GNU long name', forge(tarOf(entry('a')), setType('L'))],
    ['a global pax header', forge(tarOf(entry('a')), setType('g'))],
    ['two pax headers in a row', forge(tarOf(entry('ä'), entry('b')), setType('x'), 1024)],
    ['a pax header with another record', forge(tarOf(entry('a', '12 size=999\n')), setType('x'))],
    ['a pax header at the end', forge(tarOf(entry('a', '9 path=b\n')), setType('x'))],
    [
      'a pax path that climbs',
      forge(Buffer.concat([tarOf(entry('a', '14 path=../etc\n')).subarray(0, 1024), two]), setType('x')),
    ],
    ['a path that climbs', forge(tarOf(entry('a')), setName('../a'))],
    ['a path that climbs in the middle', forge(tarOf(entry('a')), setName('a/../../b'))],
    ['an absolute path', forge(tarOf(entry('a')), setName('/etc/passwd'))],
    ['a path with an empty part', forge(tarOf(entry('a')), setName('a//b'))],
    ['a backslash', forge(tarOf(entry('a')), setName('a\\b'))],
    ['a control character', forge(tarOf(entry('a')), setName('a\nb'))],
    ['an empty path', forge(tarOf(entry('a')), setName(''))],
    ['a setuid file', forge(tarOf(entry('a')), (header) => header.write('0004755', 100))],
    ['a size above the archive', forge(tarOf(entry('a')), (header) => header.write('77777777777', 124))],
    ['a size below zero', forge(tarOf(entry('a')), (header) => header.write('-0000000001', 124))],
    [
      'a binary size',
      forge(tarOf(entry('a')), (header) => {
        header[124] = 0x80;
      }),
    ],
    ['a path twice', tarOf(entry('a'), entry('a'))],
    ['.skillenv', tarOf(entry('.skillenv'))],
    ['a Dockerfile of an engine', tarOf(entry('.e2b.dockerfile'))],
    ['too many files', tarOf(...Array.from({ length: 10_001 }, (_, i) => entry(`f${i}`, '')))],
    ['too many levels', tarOf(entry(Array(33).fill('d').join('/')))],
  ])('refuses %s', (_name, tar) => {
    expect(() => readPackageTar(tar)).toThrow(JobError);
    expect(() => readPackageTar(tar)).toThrow(expect.objectContaining({ exitCode: EXIT.ContextCorrupt }));
  });

  test('takes files of these names deeper inside', () => {
    expect(readPackageTar(tarOf(entry('examples/.skillenv')))).toHaveLength(1);
  });

  test('never does anything but answer or refuse, whatever bytes change', () => {
    const tar = tarOf(entry('SKILL.md', 'hello'), entry('ä/b', 'x', '0755'));
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(tar.length - 1), fc.nat(255)), { minLength: 1, maxLength: 8 }),
        (changes) => {
          const copy = Buffer.from(tar);
          for (const [at, byte] of changes) copy[at] = byte;
          try {
            readPackageTar(copy);
          } catch (error) {
            expect(error).toBeInstanceOf(JobError);
          }
        },
      ),
    );
  });
});

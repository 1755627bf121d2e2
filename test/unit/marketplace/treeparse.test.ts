import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PolicyError } from '../../../src/base/errors.ts';
import { parseTree } from '../../../src/marketplace/treeparse.ts';
import { thrown } from './failure.ts';

const encode = (mode: string, name: Uint8Array, oid: Uint8Array) =>
  Buffer.concat([Buffer.from(`${mode} `), name, Buffer.from([0]), oid]);
const oidBytes = fc.uint8Array({ minLength: 20, maxLength: 20 });
const nameBytes = fc.uint8Array({ minLength: 1, maxLength: 40 }).filter((bytes) => !bytes.includes(0));

describe('parseTree', () => {
  test('reads back every tree that can be written, whatever bytes its names have', () => {
    const modes = fc.constantFrom('40000', '100644', '100755', '120000', '160000');
    fc.assert(
      fc.property(fc.array(fc.tuple(modes, nameBytes, oidBytes)), (entries) => {
        const parsed = parseTree(Buffer.concat(entries.map(([mode, name, oid]) => encode(mode, name, oid))));
        expect(parsed).toHaveLength(entries.length);
        for (const [at, [mode, name, oid]] of entries.entries()) {
          const entry = parsed[at];
          expect(entry?.mode).toBe(mode.padStart(6, '0'));
          expect(entry?.oid).toBe(Buffer.from(oid).toString('hex'));
          const back = entry?.rawName ?? Buffer.from(entry?.name ?? '');
          expect(Buffer.from(back).equals(Buffer.from(name))).toBe(true);
        }
      }),
    );
  });

  test('answers any bytes with entries or MirrorCorrupt', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          parseTree(Buffer.from(bytes));
        } catch (error) {
          expect(error).toBeInstanceOf(PolicyError);
        }
      }),
    );
  });

  test.each([
    ['100664', '100644'],
    ['100600', '100644'],
    ['100777', '100755'],
    ['040000', '040000'],
  ])('takes the odd mode %s as %s', (written, mode) => {
    expect(parseTree(encode(written, Buffer.from('x'), Buffer.alloc(20)))[0]?.mode).toBe(mode);
  });

  test('keeps the bytes of a name that is not UTF-8', () => {
    const [entry] = parseTree(encode('100644', Buffer.from([0x66, 0xff]), Buffer.alloc(20)));
    expect(entry).toMatchObject({ name: 'f\u00ff', rawName: new Uint8Array([0x66, 0xff]) });
  });

  test.each([
    ['cut in the id', encode('100644', Buffer.from('x'), Buffer.alloc(10))],
    ['without a name', Buffer.from('100644')],
    ['of an unknown kind', encode('140000', Buffer.from('x'), Buffer.alloc(20))],
    ['with letters as mode', encode('10z644', Buffer.from('x'), Buffer.alloc(20))],
  ])('refuses a tree %s', (_what, bytes) => {
    expect(thrown(() => parseTree(bytes))).toContain('Retry MirrorCorrupt: a tree object');
  });
});

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { BatchParser, type BatchReply } from '../../../src/marketplace/batchparser.ts';

const OID = 'a'.repeat(40);

/** Feeds the bytes in pieces and collects the replies. */
function read(
  bytes: Buffer,
  cuts: number[],
  contents: boolean[],
): { replies: BatchReply[]; problem: string | undefined } {
  const replies: BatchReply[] = [];
  const parser = new BatchParser(
    (reply) => replies.push(reply),
    () => contents[replies.length] ?? false,
  );
  const edges = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  for (let at = 1; at < edges.length; at++) {
    const problem = parser.push(bytes.subarray(edges[at - 1], edges[at]));
    if (problem) return { replies, problem };
  }
  return { replies, problem: undefined };
}

describe('BatchParser', () => {
  test('finds the same replies however the bytes are cut, whatever stands in the contents', () => {
    const object = fc.record({
      type: fc.constantFrom('blob', 'tree'),
      content: fc.uint8Array({ maxLength: 60 }),
      ask: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(fc.option(object)), fc.array(fc.nat()), (objects, cuts) => {
        const bytes = Buffer.concat(
          objects.flatMap((one) => {
            if (!one) return [Buffer.from(`${OID} missing\n`)];
            const header = Buffer.from(`${OID} ${one.type} ${one.content.length}\n`);
            return one.ask ? [header, one.content, Buffer.from('\n')] : [header];
          }),
        );
        const { replies, problem } = read(
          bytes,
          cuts,
          objects.map((one) => one?.ask ?? false),
        );
        expect(problem).toBeUndefined();
        expect(replies).toEqual(
          objects.map((one) => {
            if (!one) return { found: false };
            const head = { found: true, type: one.type, size: one.content.length };
            return one.ask ? { ...head, content: Buffer.from(one.content) } : head;
          }),
        );
      }),
    );
  });

  test.each([
    ['a line of another kind', 'fatal: not a git repository\n', [false]],
    ['an endless line', 'x'.repeat(2000), [false]],
    ['a blob that is longer than announced', `${OID} blob 1\nab${OID} missing\n`, [true]],
  ])('stops at %s', (_what, text, contents) => {
    expect(read(Buffer.from(text), [], contents).problem).toMatch(/^git cat-file/);
  });

  test('skips the bytes of a listing above the cap and goes on', () => {
    const size = 8 * 1024 * 1024 + 1;
    const bytes = Buffer.concat([
      Buffer.from(`${OID} tree ${size}\n`),
      Buffer.alloc(size),
      Buffer.from(`\n${OID} blob 2\nhi\n`),
    ]);
    const { replies, problem } = read(bytes, [100, 70_000, 5_000_000], [true, true]);
    expect(problem).toBeUndefined();
    expect(replies).toEqual([
      { found: true, type: 'tree', size },
      { found: true, type: 'blob', size: 2, content: Buffer.from('hi') },
    ]);
  });
});

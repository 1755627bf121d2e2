import { stripVTControlCharacters } from 'node:util';
import { redact } from '../../base/redact.ts';
import { printable } from '../terminal.ts';

/** A longer line is printed in pieces, so that a log without line ends needs no memory. */
const MAX_LINE = 16 * 1024;

/** A line of a build's log as a terminal may show it: the author of the Dockerfile wrote it. */
export const tame = (line: string): string => {
  const bare = stripVTControlCharacters(redact(line)).replace(/\r+$/, '');
  return printable(bare.slice(bare.lastIndexOf('\r') + 1).replaceAll('\t', '  '));
};

/** Lines of a stream of UTF-8 bytes, tamed. The last one needs no line end. */
export async function* linesOf(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of bytes) {
    rest += decoder.decode(chunk, { stream: true });
    const lines = rest.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) yield tame(line);
    if (rest.length > MAX_LINE) {
      yield tame(rest);
      rest = '';
    }
  }
  rest += decoder.decode();
  if (rest !== '') yield tame(rest);
}

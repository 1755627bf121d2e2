import { Document, isScalar, visit } from 'yaml';

/** Everything that a terminal might obey, but for the line ends of the document itself. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;

const escaped = (char: string): string => {
  const code = char.codePointAt(0) ?? 0;
  return code > 0xffff ? `\\U${code.toString(16).padStart(8, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`;
};

/** YAML in which every string that a terminal might obey is quoted and escaped; still the same value. */
export function yaml(value: unknown): string {
  const document = new Document(value, { aliasDuplicateObjects: false });
  visit(document, {
    Scalar: (_key, node) => {
      if (isScalar(node) && typeof node.value === 'string' && UNPRINTABLE.test(node.value.replaceAll('\n', '')))
        node.type = 'QUOTE_DOUBLE';
    },
  });
  const text = document.toString({ lineWidth: 0 });
  return text.replaceAll(new RegExp(UNPRINTABLE, 'gu'), (char) => (char === '\n' ? char : escaped(char)));
}

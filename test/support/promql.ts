/**
 * Reads PromQL as far as alerts and dashboards of this product go: numbers, selectors with a range, calls, aggregations, binary operators.
 * Whatever else stands there is refused, so that a typing error is found without Prometheus.
 */

/** What an expression asks for. */
export interface Asked {
  /** Metric → labels of its matchers, for each selector. */
  selectors: { name: string; matchers: Record<string, string>; range: boolean }[];
  /** Labels that are grouped by. */
  grouped: string[];
}

const FUNCTIONS: Readonly<Record<string, { range: boolean }>> = {
  rate: { range: true },
  increase: { range: true },
  changes: { range: true },
  min_over_time: { range: true },
  absent: { range: false },
  histogram_quantile: { range: false },
};
const AGGREGATIONS = new Set(['sum', 'max', 'min', 'avg', 'count']);
const TOKEN =
  /\s*(?:(?<number>\d+(?:\.\d+)?)(?![\w[])|(?<word>[a-zA-Z_:][\w:]*)|(?<string>"(?:[^"\\]|\\.)*")|(?<range>\[\d+[smhd]\])|(?<sign>=~|!~|!=|==|>=|<=|[-+*/<>=(){},]))/y;

interface Token {
  kind: string;
  text: string;
}

function tokens(text: string): Token[] {
  const found: Token[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.trimEnd().length) {
    const at = TOKEN.lastIndex;
    const match = TOKEN.exec(text);
    if (!match?.groups) throw new Error(`not PromQL at "${text.slice(at, at + 20)}"`);
    const [kind, value] = Object.entries(match.groups).find(([, part]) => part !== undefined) as [string, string];
    found.push({ kind, text: value });
  }
  return found;
}

class Parser {
  readonly asked: Asked = { selectors: [], grouped: [] };
  readonly #tokens: Token[];
  #at = 0;

  constructor(text: string) {
    this.#tokens = tokens(text);
  }

  whole(): Asked {
    this.#expression(false);
    if (this.#at < this.#tokens.length) throw new Error(`"${this.#peek()}" is too much`);
    return this.asked;
  }

  #peek(): string {
    return this.#tokens[this.#at]?.text ?? '';
  }

  #take(expected?: string): Token {
    const token = this.#tokens[this.#at++];
    if (!token || (expected !== undefined && token.text !== expected)) {
      throw new Error(`expected ${expected ?? 'more'}, found "${token?.text ?? 'the end'}"`);
    }
    return token;
  }

  #expression(range: boolean): void {
    this.#operand(range);
    while (/^(?:[-+*/<>]|[=!<>]=|and|or|unless)$/.test(this.#peek())) {
      this.#take();
      this.#operand(range);
    }
  }

  #operand(range: boolean): void {
    const token = this.#take();
    if (token.kind === 'number') return;
    if (token.text === '(') {
      this.#expression(range);
      this.#take(')');
      return;
    }
    if (token.kind !== 'word') throw new Error(`"${token.text}" is no operand`);
    if (AGGREGATIONS.has(token.text)) this.#aggregation();
    else if (this.#peek() === '(') this.#call(token.text);
    else this.#selector(token.text, range);
  }

  #aggregation(): void {
    if (this.#peek() === 'by') {
      this.#take('by');
      this.#take('(');
      do this.asked.grouped.push(this.#take().text);
      while (this.#peek() === ',' && this.#take());
      this.#take(')');
    }
    this.#take('(');
    this.#expression(false);
    this.#take(')');
  }

  #call(name: string): void {
    const known = FUNCTIONS[name];
    if (!known) throw new Error(`there is no function ${name}`);
    this.#take('(');
    do this.#expression(known.range);
    while (this.#peek() === ',' && this.#take());
    this.#take(')');
  }

  #selector(name: string, range: boolean): void {
    const matchers: Record<string, string> = {};
    this.#take('{');
    do {
      const label = this.#take().text;
      if (!/^(?:=|!=|=~|!~)$/.test(this.#take().text)) throw new Error(`${label} has no matcher`);
      matchers[label] = this.#take().text.slice(1, -1);
    } while (this.#peek() === ',' && this.#take());
    this.#take('}');
    const ranged = this.#tokens[this.#at]?.kind === 'range';
    if (ranged) this.#at++;
    if (ranged !== range)
      throw new Error(`${name} ${range ? 'needs a range such as [5m]' : 'must have no range'} here`);
    this.asked.selectors.push({ name, matchers, range });
  }
}

/** Throws on what is no expression of the kinds above. */
export const readPromql = (text: string): Asked => new Parser(text).whole();

/**
 * Label selectors as `kubectl -l` takes them, as far as the operator has to understand one: is it well-formed, and which
 * labels does it ask about. Whether an object matches is the API server's matter alone.
 */

const NAME = '(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?';
const VALUE = '(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?';
const SET = String.raw`\(\s*${VALUE}(?:\s*,\s*${VALUE})*\s*\)`;
/** One requirement: `a=b`, `a==b`, `a!=b`, `a in (b,c)`, `a notin (b,c)`, `a` or `!a`. */
const REQUIREMENT = new RegExp(
  String.raw`^\s*(?:!\s*(${NAME})|(${NAME})\s*(?:(?:==?|!=)\s*${VALUE}|\s(?:in|notin)\s*${SET})?)\s*$`,
);

/** The labels that a selector asks about, each once; undefined when it is no selector (or an empty one). */
export function selectorLabels(selector: string): string[] | undefined {
  // Commas between parentheses separate values, the others requirements.
  const requirements = selector.split(/,(?![^()]*\))/);
  const names = new Set<string>();
  for (const requirement of requirements) {
    const [, absent, present] = REQUIREMENT.exec(requirement) ?? [];
    const name = absent ?? present;
    if (name === undefined) return undefined;
    names.add(name);
  }
  return [...names];
}

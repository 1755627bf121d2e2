import { parseArgs } from 'node:util';
import { EXIT } from '../build/exits.ts';
import type { Network } from './download.ts';
import { JobError } from './failure.ts';
import type { FetchOptions } from './fetch.ts';
import type { PushOptions } from './push.ts';

/** What the program was asked to do. */
export type JobCommand =
  | { command: 'fetch'; options: FetchOptions }
  | { command: 'push'; options: PushOptions }
  | { command: 'help' };

/** The text of --help. */
export const USAGE = `Steps of an image build; the operator runs them in the pods of its build Jobs.

Usage:
  jobs fetch --urls=DIR --context=DIR --dockerfile=FILE --tar-sha256=HEX --tar-size=N --dockerfile-sha256=HEX --dockerfile-size=N
             [--ca=FILE] [--http-proxy=URL] [--https-proxy=URL] [--no-proxy=LIST]
  jobs push  --layout=DIR --work=DIR --image=HOST/REPOSITORY --max-bytes=N --result=FILE
             [--credential=FILE] [--insecure] [--ca=DIR] [--skopeo=PROGRAM] [--http-proxy=URL] [--https-proxy=URL] [--no-proxy=LIST]
`;

const STRINGS = [
  'urls',
  'context',
  'dockerfile',
  'tar-sha256',
  'tar-size',
  'dockerfile-sha256',
  'dockerfile-size',
  'layout',
  'work',
  'image',
  'max-bytes',
  'result',
  'credential',
  'ca',
  'skopeo',
  'http-proxy',
  'https-proxy',
  'no-proxy',
] as const;

type Values = Partial<Record<(typeof STRINGS)[number], string>> & { insecure?: boolean; help?: boolean };

const usage = (what: string): JobError => new JobError(EXIT.Usage, `${what}; see --help`);

function needed(values: Values, name: (typeof STRINGS)[number]): string {
  const value = values[name];
  if (value) return value;
  throw usage(`--${name} is missing`);
}

function count(values: Values, name: 'tar-size' | 'dockerfile-size' | 'max-bytes'): number {
  const text = needed(values, name);
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw usage(`--${name} must be a number`);
}

function checksum(values: Values, name: 'tar-sha256' | 'dockerfile-sha256'): string {
  const text = needed(values, name);
  if (/^[0-9a-f]{64}$/.test(text)) return text;
  throw usage(`--${name} must be 64 hex digits`);
}

const networkOf = (values: Values): Network => ({
  httpProxy: values['http-proxy'],
  httpsProxy: values['https-proxy'],
  noProxy: values['no-proxy'],
});

function fetchOptions(values: Values): FetchOptions {
  return {
    urls: needed(values, 'urls'),
    context: needed(values, 'context'),
    dockerfile: needed(values, 'dockerfile'),
    tar: { sha256: checksum(values, 'tar-sha256'), size: count(values, 'tar-size') },
    dockerfileSource: { sha256: checksum(values, 'dockerfile-sha256'), size: count(values, 'dockerfile-size') },
    network: { ...networkOf(values), caFile: values.ca },
  };
}

function pushOptions(values: Values): PushOptions {
  return {
    layout: needed(values, 'layout'),
    work: needed(values, 'work'),
    image: needed(values, 'image'),
    maxBytes: count(values, 'max-bytes'),
    result: needed(values, 'result'),
    credential: values.credential,
    insecure: values.insecure ?? false,
    certificates: values.ca,
    network: networkOf(values),
    skopeo: values.skopeo ?? 'skopeo',
  };
}

/** Reads the command line; JobError `Usage` names what is wrong. */
export function parseCommand(argv: readonly string[]): JobCommand {
  const strings = Object.fromEntries(STRINGS.map((name) => [name, { type: 'string' as const }]));
  const flags = { insecure: { type: 'boolean' as const }, help: { type: 'boolean' as const, short: 'h' } };
  let parsed: { values: Values; positionals: string[] };
  try {
    parsed = parseArgs({ args: [...argv], options: { ...strings, ...flags }, allowPositionals: true }) as never;
  } catch (error) {
    throw usage((error as Error).message);
  }
  const { values, positionals } = parsed;
  if (values.help) return { command: 'help' };
  const [command, ...rest] = positionals;
  if (rest.length > 0) throw usage(`${JSON.stringify(rest[0])} is one argument too many`);
  if (command === 'fetch') return { command, options: fetchOptions(values) };
  if (command === 'push') return { command, options: pushOptions(values) };
  throw usage(`the command must be fetch or push, found ${JSON.stringify(command ?? '')}`);
}

import { API_VERSION } from '../../api/labels.ts';
import type { MarketplaceSource } from '../../api/marketplacesource.ts';
import { MARKETPLACE_SOURCES, SKILLS } from '../../api/resources.ts';
import type { Skill } from '../../api/skill.ts';
import { age, type Cell, json, type Paint, table } from '../terminal.ts';
import { STYLES, type State, stateOf } from './state.ts';

/** How a table is printed. */
export interface TableOptions {
  paint: Paint;
  /** Columns of the terminal; absent: nothing is cut. */
  width?: number | undefined;
  /** Wall clock, for the ages. */
  now: number;
  /** A first column with the namespace. */
  withNamespace: boolean;
}

interface Named {
  metadata: { namespace?: string; name: string; creationTimestamp?: string };
}

const cell = (text: string | undefined, style?: Cell['style']): Cell => ({ text: text || '-', style });

const stateCells = ({ word, reason, message }: State): Cell[] => [
  cell(word, STYLES[word]),
  cell(reason === word ? '' : reason),
  cell(message),
];

function head({ metadata }: Named, { withNamespace }: TableOptions): Cell[] {
  return [...(withNamespace ? [cell(metadata.namespace)] : []), cell(metadata.name, 'bold')];
}

const ageCell = ({ metadata }: Named, { now }: TableOptions): Cell =>
  cell(metadata.creationTimestamp === undefined ? '' : age(now - Date.parse(metadata.creationTimestamp)));

const namespaceTitle = ({ withNamespace }: TableOptions): string[] => (withNamespace ? ['NAMESPACE'] : []);

/** `main@sha1:0123456…` as people say it: `main@0123456789ab`. */
export const shortRevision = (revision: string | undefined): string =>
  revision?.replace(/@(?:sha1|sha256):([0-9a-f]{12})[0-9a-f]*$/, '@$1') ?? '';

function countsOf({ status }: MarketplaceSource): string {
  const { total, ready } = status?.skills ?? {};
  return total === undefined ? '' : `${ready ?? 0}/${total}`;
}

/** Lines of the table of sources. Pure. */
export function sourceTable(sources: readonly MarketplaceSource[], options: TableOptions): string[] {
  const header = [
    ...namespaceTitle(options),
    'SOURCE',
    'TYPE',
    'REVISION',
    'READY',
    'AGE',
    'STATE',
    'REASON',
    'MESSAGE',
  ];
  const rows = sources.map((source) => [
    ...head(source, options),
    cell(source.spec.type),
    cell(shortRevision(source.status?.revision)),
    cell(countsOf(source)),
    ageCell(source, options),
    ...stateCells(stateOf(source)),
  ]);
  return table(header, rows, options.paint, options.width);
}

/** Lines of the table of Skills. Pure. */
export function skillTable(skills: readonly Skill[], options: TableOptions): string[] {
  const header = [
    ...namespaceTitle(options),
    'SKILL',
    'RUNTIME',
    'SERVED',
    'TEMPLATE',
    'AGE',
    'STATE',
    'REASON',
    'MESSAGE',
  ];
  const rows = skills.map((skill) => [
    ...head(skill, options),
    cell(skill.status?.runtime),
    cell(skill.status?.served?.version),
    cell(Object.values(skill.status?.templateIDs ?? {}).join(',')),
    ageCell(skill, options),
    ...stateCells(stateOf(skill)),
  ]);
  return table(header, rows, options.paint, options.width);
}

/** The objects as kubectl would list them, without managedFields; inert in a terminal in both formats. */
export async function listing(
  sources: readonly MarketplaceSource[],
  skills: readonly Skill[],
  format: 'json' | 'yaml',
): Promise<string> {
  const whole = (kind: string) => (object: MarketplaceSource | Skill) => {
    const { managedFields: _, ...metadata } = object.metadata as typeof object.metadata & { managedFields?: unknown };
    return {
      apiVersion: API_VERSION,
      kind,
      metadata,
      spec: object.spec,
      ...(object.status ? { status: object.status } : {}),
    };
  };
  const items = [...sources.map(whole(MARKETPLACE_SOURCES.kind)), ...skills.map(whole(SKILLS.kind))];
  const list = { apiVersion: 'v1', kind: 'List', items };
  return format === 'json' ? `${json(list, 2)}\n` : (await import('./yaml.ts')).yaml(list);
}

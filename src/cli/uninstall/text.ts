import type { Leader } from '../cluster/lease.ts';
import { count, type Paint, printable } from '../terminal.ts';
import { type External, externalOf, type Inventory, type Remaining } from './plan.ts';

/** What `uninstall` did or would do; the shape of the JSON output. */
export interface UninstallResult {
  dryRun: boolean;
  sources: number;
  skills: number;
  /** Images and templates of the Skills; with `orphaned` they stay on purpose. */
  external: External[];
  orphaned: boolean;
  /** Skills that did not go. */
  remaining: Remaining[];
  /** What was left behind without a record in the cluster. */
  leaked: External[];
  /** Versions of deleted Skills that the operator still tries to remove. */
  ledger: number;
  next: string[];
}

const MAX_LISTED = 20;

/** `- e2b template tpl-1, image r/x@sha256:…   default/team.media.ocr`. */
const externalLine = ({ namespace, skill, engine, templateID, image }: External): string => {
  const parts = [
    ...(templateID ? [`${engine ?? ''} template ${templateID}`.trim()] : []),
    ...(image ? [`image ${image}`] : []),
  ];
  return printable(`  ${namespace}/${skill}: ${parts.join(', ')}`);
};

/** Lines of at most twenty entries; the last one counts the rest. */
function listed<T>(entries: readonly T[], line: (entry: T) => string): string[] {
  const more = entries.length - MAX_LISTED;
  return [...entries.slice(0, MAX_LISTED).map(line), ...(more > 0 ? [`  and ${more} more (-o json lists all)`] : [])];
}

const byNamespace = ({ sources, skills }: Inventory): string[] => {
  const counts = new Map<string, { sources: number; skills: number }>();
  const of = (namespace = '') => {
    const found = counts.get(namespace) ?? { sources: 0, skills: 0 };
    counts.set(namespace, found);
    return found;
  };
  for (const { metadata } of sources) of(metadata.namespace).sources++;
  for (const { metadata } of skills) of(metadata.namespace).skills++;
  return [...counts].map(([name, n]) => `  ${name}: ${count(n.sources, 'source')}, ${count(n.skills, 'Skill')}`).sort();
};

/** Whether somebody is there to remove images and templates. */
export function leaderText(leader: Leader | undefined): string {
  if (!leader) return 'Whether the operator works is not known: its Lease may not be read.';
  if (leader.alive) return `The operator works (${printable(leader.holder)}).`;
  return 'No operator works: nobody is there to remove images and templates. Start it first, or use --force later.';
}

/** What would be done. Pure. */
export function planText(
  inventory: Inventory,
  leader: Leader | undefined,
  options: { orphan: boolean; next: readonly string[]; paint: Paint; again: string },
): string {
  const external = externalOf(inventory.skills);
  const { orphan, next, paint, again } = options;
  const nothing = inventory.sources.length + inventory.skills.length === 0;
  const stay = orphan ? 'These stay, because of --orphan:' : 'The operator removes these from registry and engines:';
  return `${[
    ...(nothing
      ? ['There is no MarketplaceSource and no Skill.']
      : ['This would delete:', ...byNamespace(inventory), leaderText(leader)]),
    ...(external.length > 0 ? [stay, ...listed(external, externalLine)] : []),
    '',
    nothing ? 'What is left to do:' : 'Then these commands would remove the rest:',
    ...next.map((command) => `  ${paint('cyan', command)}`),
    ...(nothing ? [] : ['', `Nothing was changed. To do it: ${paint('bold', again)}`]),
  ].join('\n')}\n`;
}

/** Skills that did not go, and what stays outside because of them. Pure. */
export function remainingText(skills: readonly Remaining[], external: readonly External[], why: string): string {
  return `${[
    `${count(skills.length, 'Skill')} did not go: ${why}`,
    ...listed(skills, ({ namespace, name, finalizers, message }) =>
      printable(
        `  ${namespace}/${name}${finalizers.length > 0 ? ` (held by ${finalizers.join(', ')})` : ''}${message ? `: ${message}` : ''}`,
      ),
    ),
    ...(external.length > 0 ? ['Outside the cluster there are still:', ...listed(external, externalLine)] : []),
  ].join('\n')}\n`;
}

/** How it ended. Pure. */
export function resultText(result: UninstallResult, paint: Paint): string {
  const { sources, skills, external, orphaned, remaining, leaked, ledger, next } = result;
  const outside =
    external.length === 0
      ? []
      : [orphaned ? `${count(external.length, 'version')} left images and templates behind, because of --orphan.` : ''];
  return `${[
    `${paint(remaining.length > 0 ? 'yellow' : 'green', `Deleted ${count(sources, 'source')} and ${count(skills - remaining.length, 'Skill')}.`)}`,
    ...outside.filter((line) => line !== ''),
    ...(leaked.length > 0 ? ['Left behind; remove them by hand:', ...listed(leaked, externalLine)] : []),
    ...(ledger > 0
      ? [
          `${count(ledger, 'version')} of deleted Skills could not be removed yet. The operator keeps trying: leave it running until skillctl doctor says that the ledger is empty.`,
        ]
      : []),
    ...(remaining.length > 0
      ? []
      : [
          'Now:',
          ...next.map((command) => `  ${paint('cyan', command)}`),
          'Packages stay in the bucket until you delete its prefix.',
        ]),
  ].join('\n')}\n`;
}

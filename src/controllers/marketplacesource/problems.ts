import { ANNOTATIONS } from '../../api/labels.ts';
import type { MarketplaceSource, Problem } from '../../api/marketplacesource.ts';
import { redact } from '../../base/redact.ts';
import type { Resolved } from '../../marketplace/port.ts';
import type { Plan } from './plan.ts';

const MAX_PROBLEMS = 20;

/** The problems as the status lists them: at most twenty, short and redacted; the last one says how many more there are. */
export function capProblems(problems: readonly Problem[]): Problem[] {
  const listed = problems.slice(0, MAX_PROBLEMS).map(({ path, reason, message }) => ({
    path: redact(path).slice(0, 512),
    reason,
    message: redact(message).slice(0, 512),
  }));
  const more = problems.length - listed.length;
  const last = listed.at(-1);
  if (more > 0 && last) last.message = `${last.message} (and ${more} more problems that are not listed)`;
  return listed;
}

/** What PruneBlocked says: how many vanished, ten of them, and the command that allows this revision (I14). */
export function blockedMessage(
  source: MarketplaceSource,
  resolved: Resolved,
  blocked: NonNullable<Plan['blocked']>,
): string {
  const { names, vanished, total } = blocked;
  const { namespace, name } = source.metadata;
  const more = vanished > names.length ? ` and ${vanished - names.length} more` : '';
  return (
    `${vanished} of ${total} skills vanished at once in ${resolved.revision}: ${names.join(', ')}${more}; none of them was deleted. ` +
    'If that is right, allow it: ' +
    `kubectl -n ${namespace} annotate marketplacesource ${name} ${ANNOTATIONS.allowPrune}=${resolved.commit} --overwrite`
  );
}

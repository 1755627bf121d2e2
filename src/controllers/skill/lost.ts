import type { PolicyError } from '../../base/errors.ts';
import type { Reason } from '../../base/reasons.ts';
import { packageThing } from '../../store/sweep.ts';
import type { Health } from '../health.ts';
import { type Pass, standing } from './pass.ts';

/** Failures that mean: Git no longer offers the content. All others leave that open. */
const GONE: ReadonlySet<Reason> = new Set([
  'TreeGone',
  'PathNotFound',
  'RefNotFound',
  'EmptyRepository',
  'RepositoryNotFound',
  'SourceNotFound',
]);

/**
 * The message when the store lost the package of the served version and this pass could not bring it back; undefined otherwise. Only a
 * pass that looked at the store and knows what Git offers says something new; what the status says stands until the package was seen.
 */
export function packageLost(
  { skill, slots, verifying }: Pick<Pass, 'skill' | 'slots' | 'verifying'>,
  health: Health,
  failure?: PolicyError,
): string | undefined {
  const { served } = slots;
  if (!served) return undefined;
  const state = health.packageState(packageThing(skill.metadata.namespace ?? '', served.digest));
  const same = skill.status?.served?.digest === served.digest;
  const said = same && standing(skill, 'Serving', 'PackageLost') !== undefined;
  const lost = verifying && state === 'lost' && (failure === undefined || GONE.has(failure.reason));
  if (!lost && !(said && state !== 'whole')) return undefined;
  return `the package of version ${served.version} is no longer in the bucket and Git does not offer its content; push the content of commit ${served.commit} again, or restore the bucket from its backup`;
}

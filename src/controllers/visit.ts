import type { MarketplaceSource } from '../api/marketplacesource.ts';
import type { Skill } from '../api/skill.ts';
import { type Key, keyOf } from '../kube/types.ts';
import type { RefSpec, Remote, Resolved, TreeSource } from '../marketplace/port.ts';
import type { Visit } from './githosts.ts';
import { isObserved, isRequested } from './requests.ts';

/** The visit of an object at the host of a URL, with the credential that a Secret of its namespace holds. */
export const visitOf = (
  object: Skill | MarketplaceSource,
  url: string,
  secretRef: { name: string } | undefined,
  wake: (key: Key) => void,
): Visit => ({
  url,
  caller: `${object.metadata.namespace}/${secretRef?.name ?? ''}`,
  key: keyOf(object),
  urgent: !isObserved(object) || isRequested(object),
  wake,
});

/** What the ref points at, asked during a turn at the host, which `answered` tells that it spoke. Errors: those of Git. */
export async function resolveInTurn(
  trees: TreeSource,
  remote: Remote,
  ref: RefSpec | undefined,
  answered: () => void,
  signal: AbortSignal,
): Promise<Resolved> {
  const resolved = await trees.resolve(remote, ref ?? {}, signal);
  // A commit by its id is known without a word of the host.
  if (ref?.commit === undefined) answered();
  return resolved;
}

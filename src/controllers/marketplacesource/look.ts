import { gitLocation } from '../../api/defaults.ts';
import { ANNOTATIONS } from '../../api/labels.ts';
import type { MarketplaceSource } from '../../api/marketplacesource.ts';
import type { Skill } from '../../api/skill.ts';
import { inSlices } from '../../base/slices.ts';
import type { Key } from '../../kube/types.ts';
import type { Resolved, TreeReader, TreeSource } from '../../marketplace/port.ts';
import type { GitHosts } from '../githosts.ts';
import type { Remotes } from '../remotes.ts';
import { resolveInTurn, visitOf } from '../visit.ts';
import { blockOf, liveInventory, observedSpecOf } from './plan.ts';
import type { Shard } from './shard.ts';

/** What looking at Git needs. */
export interface LookDeps {
  trees: TreeSource;
  remotes: Remotes;
  hosts: GitHosts;
  /** Puts a key back into the queue at once. */
  wake: (key: Key) => void;
  /** Set where this instance works on a part of the sources. */
  shard?: Shard | undefined;
}

/** What Git has for a source. */
interface Look {
  resolved: Resolved;
  /** Directory below which plugins/ is expected. */
  root: string;
  /** A person allowed this revision to delete what vanished. */
  allowed: boolean;
  observedSpec: string;
  children: Skill[];
  /** undefined: nothing to do, the last pass left everything as it is. Dispose it. */
  reader: TreeReader | undefined;
}

/**
 * Asks the remote what the ref points at and opens that commit where anything moved; both during one turn at the host.
 * Throws HostBusy where there is none, and the errors of Secrets and Git.
 */
export async function look(
  { trees, remotes, hosts, wake, shard }: LookDeps,
  { source, children: cached }: { source: MarketplaceSource; children: Skill[] },
  signal: AbortSignal,
): Promise<Look> {
  const { spec, status } = source;
  const visit = visitOf(source, gitLocation(spec)?.url ?? '', spec.secretRef, wake);
  return hosts.run(visit, async (answered) => {
    const { remote, root } = await remotes.ofSource(source, true, signal);
    const resolved = await resolveInTurn(trees, remote, spec.ref, answered, signal);
    const observedSpec = observedSpecOf(source, shard?.followed);
    // Skills that carry the labels of another shard still are in no cache here.
    const moved = shard && status?.observedSpec !== observedSpec;
    const children = moved ? await shard.children(source, signal) : cached;
    const known = { resolved, root, allowed: isAllowed(source, resolved), observedSpec, children };
    if (await isUnchanged(source, known, shard?.followed, signal)) return { ...known, reader: undefined };
    const reader = await trees.open(remote, resolved, signal);
    answered();
    return { ...known, reader };
  });
}

function isAllowed(source: MarketplaceSource, resolved: Resolved): boolean {
  const allowed = source.metadata.annotations?.[ANNOTATIONS.allowPrune];
  return allowed !== undefined && (allowed === resolved.commit || allowed === resolved.revision);
}

/** Nothing to do: same revision, same spec, and every Skill as the last pass left it. */
async function isUnchanged(
  source: MarketplaceSource,
  { resolved, allowed, observedSpec, children }: Omit<Look, 'reader'>,
  followed: readonly string[] | undefined,
  signal: AbortSignal,
): Promise<boolean> {
  const { status } = source;
  if (allowed && blockOf(source)) return false;
  return (
    status?.revision === resolved.revision &&
    status.observedSpec === observedSpec &&
    status.inventory === (await inSlices(liveInventory(source, children, followed), signal))
  );
}

import { ANNOTATIONS } from '../../api/labels.ts';
import { skillDirectory } from '../../api/names.ts';
import type { Skill } from '../../api/skill.ts';
import { type Key, keyOf, type Store } from '../../kube/types.ts';

/** Name of the index of Skills by namespace and bare name. */
export const BY_NAME = 'name';

/** Value of that index: the bare name is the directory's, which a valid skill's `name` equals. */
export const nameKey = (skill: Skill): string => `${skill.metadata.namespace}/${skillDirectory(skill.spec.path)}`;

/** What the rule needs to know of one Skill with the name. */
interface Contender {
  name: string;
  created: string;
  serves: boolean;
  /** `unknown`: no pass has ended yet. */
  content: 'valid' | 'invalid' | 'unknown';
  handover?: string | undefined;
}

/** Who has a bare name, as one contender sees it. */
export type NameVerdict =
  | { kind: 'free' }
  | { kind: 'taken'; holder: string }
  /** An older contender has not been validated yet: its verdict decides. */
  | { kind: 'wait'; behind: string };

const older = (a: Contender, b: Contender): boolean =>
  a.created === b.created ? a.name < b.name : a.created < b.created;

/**
 * The rule for one bare name and several Skills of a namespace: the one that serves keeps it, else the oldest valid one has it;
 * of two that serve, the older. A Skill that hands its name over to `self` does not count.
 */
export function decideName(self: Contender, peers: readonly Contender[]): NameVerdict {
  const rivals = peers.filter((peer) => peer.handover !== self.name);
  const serving = rivals.filter((peer) => peer.serves).sort((a, b) => (older(a, b) ? -1 : 1))[0];
  if (self.serves) return serving && older(serving, self) ? { kind: 'taken', holder: serving.name } : { kind: 'free' };
  if (serving) return { kind: 'taken', holder: serving.name };
  const before = rivals.filter((peer) => older(peer, self)).sort((a, b) => (older(a, b) ? -1 : 1));
  const open = before.find((peer) => peer.content !== 'invalid');
  if (!open) return { kind: 'free' };
  return open.content === 'valid' ? { kind: 'taken', holder: open.name } : { kind: 'wait', behind: open.name };
}

function contentOf(skill: Skill): Contender['content'] {
  const conditions = skill.status?.conditions;
  if (!conditions || conditions.length === 0) return skill.spec.suspend ? 'invalid' : 'unknown';
  const validated = conditions.find(({ type }) => type === 'Validated');
  // A Skill whose content could not be read has had its turn; it must not hold the others up.
  return validated?.status === 'True' ? 'valid' : 'invalid';
}

/** Bare names of all namespaces: who may serve under one, claims included whose status write is not in the cache yet. */
export class Names {
  readonly #skills: Store<Skill>;
  readonly #claims = new Map<string, Key>();

  constructor(skills: Store<Skill>) {
    this.#skills = skills;
  }

  /** Who has the name of `skill`. */
  verdict(skill: Skill): NameVerdict {
    const claim = this.#claims.get(nameKey(skill));
    const peers = this.peers(skill).filter((peer) => !peer.metadata.deletionTimestamp);
    return decideName(
      this.#contender(skill, claim),
      peers.map((peer) => this.#contender(peer, claim)),
    );
  }

  /** All other Skills with the same bare name. */
  peers(skill: Skill): Skill[] {
    const self = keyOf(skill);
    return this.#skills.byIndex(BY_NAME, nameKey(skill)).filter((peer) => keyOf(peer) !== self);
  }

  /** `skill` is about to serve; holds the name for it until `settle` or `release`. */
  claim(skill: Skill): void {
    this.#claims.set(nameKey(skill), keyOf(skill));
  }

  /** The write failed, or the Skill is gone. */
  release(skill: Skill): void {
    if (this.#claims.get(nameKey(skill)) === keyOf(skill)) this.#claims.delete(nameKey(skill));
  }

  /** The cache shows a new state of the Skill: once it serves there, the claim has done its work. */
  settle(skill: Skill): void {
    if (skill.status?.served || skill.metadata.deletionTimestamp) this.release(skill);
  }

  #contender(skill: Skill, claim: Key | undefined): Contender {
    return {
      name: skill.metadata.name,
      created: skill.metadata.creationTimestamp ?? '',
      serves: skill.status?.served !== undefined || claim === keyOf(skill),
      content: contentOf(skill),
      handover: skill.metadata.annotations?.[ANNOTATIONS.handover],
    };
  }
}

/** What others with the same name go by; equal before and after a change: nobody needs to be woken. */
export function nameFacts(skill: Skill | undefined): string {
  if (!skill) return 'gone';
  const { metadata, status } = skill;
  const facts = [
    nameKey(skill),
    metadata.uid,
    Boolean(metadata.deletionTimestamp),
    Boolean(status?.served),
    contentOf(skill),
    metadata.annotations?.[ANNOTATIONS.handover],
  ];
  return facts.join('|');
}

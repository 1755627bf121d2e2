import { skillDirectory } from '../../api/names.ts';
import type { Candidate, Skill, Version } from '../../api/skill.ts';
import { type Clock, rfc3339 } from '../../base/clock.ts';
import { PolicyError } from '../../base/errors.ts';
import { parsePinned } from '../../build/names.ts';
import { advance } from '../../engine/advance.ts';
import { settingsHash, templateName } from '../../engine/names.ts';
import type { RegisterSpec, RegistryAuth, SandboxEngine, TemplateRef, TemplateSettings } from '../../engine/port.ts';
import type { Store } from '../../kube/types.ts';
import type { Event, Slots } from '../../lifecycle/slots.ts';
import type { Engine } from '../../protocol/types.ts';
import type { HandsResult } from './port.ts';

/** One engine as this installation uses it. */
export interface EngineSetup {
  engine: SandboxEngine;
  settings: TemplateSettings;
  /** Registrations under way at once. */
  maxConcurrent: number;
  /** The credential with which the engine pulls the image; undefined: none is needed. */
  pullAuth?: (repository: string, signal: AbortSignal) => Promise<RegistryAuth | undefined>;
}

/** Whose version it is. */
export interface VersionOwner {
  namespace: string;
  /** metadata.name of the Skill. */
  skill: string;
  /** Directory of the Skill, which the template's name begins with. */
  bareName: string;
}

/** The owner of a Skill's versions. */
export const ownerOf = ({ metadata, spec }: Skill): VersionOwner => ({
  namespace: metadata.namespace ?? '',
  skill: metadata.name,
  bareName: skillDirectory(spec.path),
});

interface RegistrationDeps {
  installation: string;
  engines: Readonly<Partial<Record<Engine, EngineSetup>>>;
  skills: Store<Skill>;
  clock: Clock;
}

const POLL_MS = 5_000;
/** Between two tries of an engine that does not answer or is busy. */
const RETRY_MS = 15_000;
const WAITING_MS = 60_000;

/** Drives a candidate with an image to a template that its engine can start. */
export class Registrations {
  readonly #deps: RegistrationDeps;

  constructor(deps: RegistrationDeps) {
    this.#deps = deps;
  }

  /** The engine of a version, where this installation has one. */
  setupOf(engine: string | undefined): EngineSetup | undefined {
    return this.#deps.engines[engine as Engine];
  }

  /** What the engine knows a version's template by; undefined without a template or an image. */
  refOf(skill: Skill, version: Version, buildID = ''): TemplateRef | undefined {
    return this.refFor(ownerOf(skill), version, buildID);
  }

  /** The same, of a Skill that may be gone. */
  refFor(
    owner: VersionOwner,
    version: Pick<Version, 'engine' | 'templateID' | 'image' | 'settings'>,
    buildID = '',
  ): TemplateRef | undefined {
    const { templateID, image } = version;
    const setup = this.setupOf(version.engine);
    if (!templateID || !image || !setup) return undefined;
    const name = this.#name(owner, version, version.settings ?? settingsHash(setup.settings));
    return { templateId: templateID, buildId: buildID, name, image };
  }

  /** One step of the registration. */
  async step(skill: Skill, candidate: Candidate, slots: Slots, signal: AbortSignal): Promise<HandsResult> {
    const setup = this.setupOf(candidate.engine);
    if (!setup || !candidate.image) return { events: [] };
    if (!candidate.templateID && this.#underWay(candidate.engine) >= setup.maxConcurrent) {
      return { events: [], againMs: POLL_MS };
    }
    try {
      return await this.#advance(skill, candidate, slots, setup, signal);
    } catch (error) {
      if (signal.aborted || !(error instanceof PolicyError)) throw error;
      return this.#failed(error, candidate);
    }
  }

  async #advance(
    skill: Skill,
    candidate: Candidate,
    slots: Slots,
    setup: EngineSetup,
    signal: AbortSignal,
  ): Promise<HandsResult> {
    const now = this.#deps.clock.now();
    const spec = await this.#spec(skill, candidate, setup, signal);
    const held = new Set(
      [slots.served, ...slots.retired].flatMap((slot) => (slot?.templateID ? [slot.templateID] : [])),
    );
    const ref = this.refOf(skill, candidate, candidate.buildID);
    const startedAt = Date.parse(candidate.startedAt ?? '') || now;
    const due = candidate.retryAt !== undefined && Date.parse(candidate.retryAt) <= now;
    const record = { ref, startedAt, retryFailed: due, held };
    const next = await advance(setup.engine, spec, record, now, signal);
    switch (next.step) {
      case 'persist': {
        const { templateId: templateID, buildId: buildID } = next.ref;
        return {
          events: [{ type: 'TemplateCreated', templateID, buildID, settings: settingsHash(setup.settings) }],
          againMs: 0,
        };
      }
      case 'wait':
        return { events: [], againMs: POLL_MS };
      case 'ready': {
        const duplicates = next.duplicates.map(({ templateId }) => templateId);
        return { events: [{ type: 'Registered', templateID: next.ref.templateId, duplicates }] };
      }
      case 'failed':
        return this.#failed(next.failure, candidate);
    }
  }

  async #spec(skill: Skill, candidate: Candidate, setup: EngineSetup, signal: AbortSignal): Promise<RegisterSpec> {
    const image = candidate.image ?? '';
    const repository = parsePinned(image)?.repository ?? '';
    const registryAuth = await setup.pullAuth?.(repository, signal);
    const name = this.#name(ownerOf(skill), candidate, settingsHash(setup.settings));
    return { ...setup.settings, name, image, ...(registryAuth ? { registryAuth } : {}) };
  }

  #name(
    { namespace, skill, bareName }: VersionOwner,
    version: Pick<Version, 'engine' | 'image'>,
    settings: string,
  ): string {
    return templateName(bareName, {
      installation: this.#deps.installation,
      namespace,
      skill,
      engine: version.engine as Engine,
      imageDigest: parsePinned(version.image ?? '')?.digest ?? '',
      settings,
    });
  }

  #underWay(engine: string | undefined): number {
    const registering = this.#deps.skills.byIndex(REGISTERING, engine ?? '');
    return registering.filter((skill) => skill.status?.candidate?.templateID !== undefined).length;
  }

  #failed(
    failure: { policy: string; reason: string; message: string; logTail?: string; retryAfterMs?: number | undefined },
    candidate: Candidate,
  ): HandsResult {
    const { policy, reason, message, logTail } = failure;
    const said = { reason, message, ...(logTail ? { logTail } : {}) };
    if (policy === 'Stalled') return { events: [{ type: 'TerminalFailure', ...said }] };
    const wait = failure.retryAfterMs ?? (policy === 'Waiting' ? WAITING_MS : RETRY_MS);
    // The same failure again leaves the status as it is, so that an engine that stays down costs no writes.
    const same = candidate.reason === reason && candidate.message === message;
    const retryAt = rfc3339(this.#deps.clock.now() + wait);
    const events: Event[] = same ? [] : [{ type: 'TransientFailure', retryAt, ...said }];
    return { events, againMs: wait };
  }
}

/** Name of the index of Skills whose candidate is being registered, by engine. */
export const REGISTERING = 'registering';

/** The engine that a Skill's candidate is being registered at, if any. */
export const registeringAt = (skill: Skill): string[] => {
  const candidate = skill.status?.candidate;
  return candidate?.phase === 'Registering' && candidate.engine ? [candidate.engine] : [];
};

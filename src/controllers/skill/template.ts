import type { Skill } from '../../api/skill.ts';
import { ENGINE_LABEL } from '../../engine/errors.ts';
import { type Slots, tierOf } from '../../lifecycle/slots.ts';
import type { Engine } from '../../protocol/types.ts';
import type { Health } from '../health.ts';
import { standing } from './pass.ts';

/** Whether the status says that the engine does not know the platform template. */
export const saysUnknown = (skill: Skill): boolean => standing(skill, 'Registered', 'TemplateNotFound') !== undefined;

/**
 * The message when the platform template that a Skill runs on is one that its engine does not know; undefined otherwise. As long as the
 * engine has not been asked, what the status says stands.
 */
export function templateUnknown(skill: Skill, slots: Slots, health: Health): string | undefined {
  const { runtime = '', engine = '', templateID } = slots.candidate ?? slots.served ?? {};
  if (tierOf(runtime) !== 1 || templateID === undefined) return undefined;
  const label = ENGINE_LABEL[engine as Engine] ?? engine;
  const message = `${label} does not know the template ${templateID} of runtime ${runtime}; register it there, or correct the entry of ${runtime} in the map of platform templates`;
  const known = health.platform(`${engine}/${templateID}`);
  if (known === undefined) return standing(skill, 'Registered', 'TemplateNotFound') === message ? message : undefined;
  return known ? undefined : message;
}

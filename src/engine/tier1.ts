import { stalled } from '../base/errors.ts';
import type { Engine, Runtime } from '../protocol/types.ts';
import { ENGINE_LABEL } from './errors.ts';
import type { SandboxEngine } from './port.ts';

/** The runtimes that run on a template of the platform. */
export type Tier1Runtime = Extract<Runtime, `${Engine}::${string}`>;

/** Runtime → template id or alias at its engine. */
export type Tier1Map = Readonly<Partial<Record<Tier1Runtime, string>>>;

/** The map of an installation that configures none. Source: decisions, "Versions and templates". */
export const DEFAULT_TIER1_MAP: Required<Tier1Map> = {
  'cubesandbox::python': 'cube-tpl-py',
  'cubesandbox::node': 'cube-tpl-node',
  'e2b::python': 'e2b-python',
  'e2b::node': 'e2b-node',
};

/** Whether a runtime runs on a platform template. */
export const isTier1 = (runtime: Runtime): runtime is Tier1Runtime => runtime.includes('::');

/** The engine of a runtime; undefined for prompt-only. */
export function engineOf(runtime: Runtime): Engine | undefined {
  return runtime === 'prompt-only' ? undefined : (runtime.split('::')[0] as Engine);
}

/** Engine and entry of the map for a runtime; PolicyError Stalled `TemplateNotConfigured` when it has none. */
export function tier1Entry(map: Tier1Map, runtime: Tier1Runtime): { engine: Engine; entry: string } {
  const engine = engineOf(runtime) as Engine;
  const entry = map[runtime]?.trim();
  if (entry) return { engine, entry };
  throw stalled(
    'TemplateNotConfigured',
    `No platform template is configured for runtime ${runtime}. Add ${runtime} to the template map in the operator configuration.`,
  );
}

/**
 * The template id that a status shows for a Tier 1 runtime.
 * Without an engine the map alone decides; with one its word counts: an unknown entry is Stalled `TemplateNotFound`,
 * an engine that is down is the EngineError of the call.
 */
export async function tier1Template(
  map: Tier1Map,
  runtime: Tier1Runtime,
  engine: Pick<SandboxEngine, 'resolve'> | undefined,
  signal: AbortSignal,
): Promise<{ engine: Engine; templateId: string }> {
  const { engine: kind, entry } = tier1Entry(map, runtime);
  const templateId = engine ? await engine.resolve(entry, signal) : entry;
  if (templateId !== undefined) return { engine: kind, templateId };
  throw stalled(
    'TemplateNotFound',
    `${ENGINE_LABEL[kind]} does not know the template ${entry} of runtime ${runtime}. Register it, or correct the entry of ${runtime} in the template map.`,
  );
}

import { z } from 'zod';
import { EngineError } from './errors.ts';
import { buildFailure } from './failures.ts';
import { plainName, sameTemplate } from './names.ts';
import type { ListedTemplate, RegisterSpec, Resources, TemplateState } from './port.ts';

/**
 * The parts of E2B's API that the adapter reads, and the pure translations.
 * Loose on purpose: unknown fields pass and a state is any string, so that a newer server does not break an old operator.
 */
const names = z.array(z.string()).nullish();

export const createdSchema = z.object({ templateID: z.string().min(1), buildID: z.string().min(1) });
export const aliasSchema = z.object({ templateID: z.string().min(1) });
export const detailSchema = z.object({
  templateID: z.string().min(1),
  names,
  aliases: names,
  builds: z
    .array(z.object({ buildID: z.string(), status: z.string(), createdAt: z.string().nullish() }))
    .nullish()
    .transform((builds) => builds ?? []),
});
export const listSchema = z.array(
  z.object({ templateID: z.string().min(1), names, aliases: names, buildStatus: z.string().nullish() }),
);
const entrySchema = z.object({ message: z.string().catch(''), timestamp: z.string().nullish() });
const entries = z
  .array(entrySchema)
  .nullish()
  .transform((list) => list ?? []);
export const logsSchema = z.object({ logs: entries });
export const statusSchema = z.object({
  status: z.string(),
  logEntries: entries,
  reason: z.object({ message: z.string().nullish(), step: z.string().nullish(), logEntries: entries }).nullish(),
});

type Detail = z.output<typeof detailSchema>;
type Status = z.output<typeof statusSchema>;
type Entry = z.output<typeof entrySchema>;

/** 20 lower-case letters and digits. */
export const isTemplateId = (id: string): boolean => /^[a-z0-9]{20}$/.test(id);
/** Build ids are UUIDs. */
export const isBuildId = (id: string): boolean => /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id);

/** Whole CPUs, 1 or even; even MiB from 128: E2B refuses anything else. */
export function e2bResources(resources: Resources): { cpuCount: number; memoryMB: number } {
  const cpus = Math.max(1, Math.ceil(resources.cpuMillis / 1000));
  const memory = Math.max(128, Math.ceil(resources.memoryMiB));
  return { cpuCount: cpus > 1 ? cpus + (cpus % 2) : 1, memoryMB: memory + (memory % 2) };
}

/** Body of the second call. No tag is ever sent: tags without `default` make the name unresolvable. */
export function startBody(spec: RegisterSpec): Record<string, unknown> {
  return {
    fromImage: spec.image,
    ...(spec.registryAuth && {
      fromImageRegistry: {
        type: 'registry',
        username: spec.registryAuth.username,
        password: spec.registryAuth.password,
      },
    }),
    force: false,
    steps: [],
    ...(spec.startCommand && { startCmd: spec.startCommand }),
    ...(spec.readyCommand && { readyCmd: spec.readyCommand }),
  };
}

/** All names of a template, plain. */
export const namesOf = (row: {
  names?: string[] | null | undefined;
  aliases?: string[] | null | undefined;
}): string[] => [...new Set([...(row.names ?? []), ...(row.aliases ?? [])].map(plainName))];

/** Whether one of the template's names is of the same identity. */
export const isNamed = (row: Parameters<typeof namesOf>[0], name: string): boolean =>
  namesOf(row).some((own) => sameTemplate(own, name));

/** The newest build that may be adopted: any but a failed one and the one that already failed the caller. */
export function adoptableBuild(detail: Detail, previousBuildId: string | undefined): string | undefined {
  const newest = detail.builds.toSorted((a, b) => (b.createdAt ?? '').localeCompare(a.createdAt ?? ''))[0];
  const usable = newest && newest.status !== 'error' && newest.buildID !== previousBuildId && isBuildId(newest.buildID);
  return usable ? newest.buildID : undefined;
}

/** A list row as the port shows it. */
export const listed = (row: z.output<typeof listSchema>[number]): ListedTemplate => ({
  templateId: row.templateID,
  names: namesOf(row),
  status: row.buildStatus ?? 'unknown',
});

/** The messages of log entries, oldest first. */
export const logLines = (log: readonly Entry[]): string[] =>
  log.toSorted((a, b) => (a.timestamp ?? '').localeCompare(b.timestamp ?? '')).map((entry) => entry.message);

/** E2B cancels a build when a newer one of the same name starts: that is no failure of this Skill. */
const SUPERSEDED = /superseded/i;

/** Translates a build status; `extraLog` are lines read from the log endpoint when the status carries none. */
export function stateOf(status: Status, extraLog: readonly string[] = []): TemplateState {
  switch (status.status) {
    case 'ready':
      return { phase: 'Ready' };
    case 'waiting':
      return { phase: 'Allocated' };
    case 'error': {
      const text = status.reason?.message ?? '';
      if (SUPERSEDED.test(text))
        return { phase: 'Absent', message: 'A newer build of the same template took its place.' };
      const own = logLines(status.reason?.logEntries.length ? status.reason.logEntries : status.logEntries);
      const lines = extraLog.length > 0 ? extraLog : own;
      return { phase: 'Failed', failure: buildFailure('e2b', { step: status.reason?.step ?? undefined, text, lines }) };
    }
    default: {
      const last = logLines(status.logEntries).at(-1);
      return { phase: 'Building', ...(last ? { message: last.slice(0, 200) } : {}) };
    }
  }
}

/** Throws EngineError `Invalid` unless the id has E2B's form: a status is a claim, and ids go into paths. */
export function checkedId(id: string): string {
  if (isTemplateId(id)) return id;
  throw new EngineError('Invalid', 'e2b', 'The recorded template id does not have the form of an E2B template id');
}

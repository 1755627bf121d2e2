import { z } from 'zod';
import type { StubAnswer } from './server.ts';

export interface Entry {
  timestamp: string;
  level: string;
  message: string;
  step: string;
}

export interface Build {
  buildID: string;
  status: string;
  createdAt: number;
  tags: string[];
  cpuCount: number;
  memoryMB: number;
  logs: Entry[];
  reason?: { message: string; step: string; logEntries: Entry[] };
  polls: number;
  content?: string;
}

export interface Template {
  templateID: string;
  team: string;
  alias: string;
  builds: Build[];
  sandboxes: 'running' | 'paused' | undefined;
}

/** How a started build ends. */
export interface Outcome {
  status: 'ready' | 'error';
  message?: string;
  step?: string;
  /** An error that comes without any log. */
  silent?: boolean;
}

const credential = z.discriminatedUnion('type', [
  z.object({ type: z.literal('registry'), username: z.string(), password: z.string() }),
  z.object({
    type: z.literal('aws'),
    awsAccessKeyId: z.string(),
    awsSecretAccessKey: z.string(),
    awsRegion: z.string(),
  }),
  z.object({ type: z.literal('gcp'), serviceAccountJson: z.string() }),
]);
export const createBody = z.object({
  name: z.string(),
  tags: z.array(z.string()).optional(),
  cpuCount: z.number().optional(),
  memoryMB: z.number().optional(),
});
export const startBody = z.object({
  fromImage: z.string().optional(),
  fromTemplate: z.string().optional(),
  fromImageRegistry: credential.optional(),
  force: z.boolean().optional(),
  steps: z.array(z.unknown()).optional(),
  startCmd: z.string().optional(),
  readyCmd: z.string().optional(),
});

export const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
export const WAITING_LIMIT_MS = 40 * 60_000;
const SUPERSEDED = 'The build was canceled because it was superseded by a newer one.';
export const isBusy = (build: Build) => build.status !== 'ready' && build.status !== 'error';

export const error = (status: number, message: string, headers?: Record<string, string>): StubAnswer => ({
  status,
  json: { code: status, message },
  ...(headers && { headers }),
});

export const head = (template: Template) => ({
  templateID: template.templateID,
  public: false,
  names: [`${template.team}/${template.alias}`],
  aliases: [template.alias],
});

export function supersede(template: Template, tags: readonly string[], which: (build: Build) => boolean): void {
  for (const build of template.builds) {
    if (!which(build) || !build.tags.some((tag) => tags.includes(tag))) continue;
    build.status = 'error';
    build.reason = { message: SUPERSEDED, step: 'base', logEntries: [] };
  }
}

export function readName(raw: string, team: string): { alias: string; tag?: string } | { problem: string } {
  const name = raw.trim().toLowerCase();
  if (name.length > 128) return { problem: 'Invalid template name: too long' };
  const [full = '', tag] = name.split(':');
  const slash = full.indexOf('/');
  const alias = slash < 0 ? full : full.slice(slash + 1);
  if (slash >= 0 && full.slice(0, slash) !== team)
    return { problem: `Namespace '${full.slice(0, slash)}' must match your team` };
  if (!/^[a-z0-9-_]+$/.test(alias)) return { problem: `Invalid template name: ${alias}` };
  if (tag !== undefined && !/^[a-z0-9-_.]+$/.test(tag)) return { problem: `Invalid tag: ${tag}` };
  return tag === undefined ? { alias } : { alias, tag };
}

export function parse<T>(body: string, schema: z.ZodType<T>): { value: T } | { problem: string } {
  try {
    const parsed = schema.safeParse(JSON.parse(body));
    return parsed.success ? { value: parsed.data } : { problem: parsed.error.issues[0]?.path.join('.') || 'body' };
  } catch {
    return { problem: 'body is not JSON' };
  }
}

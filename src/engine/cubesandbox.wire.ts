import { z } from 'zod';
import { EngineError } from './errors.ts';
import { buildFailure } from './failures.ts';
import { plainName, sameTemplate } from './names.ts';
import type { ListedTemplate, RegisterSpec, TemplateRef, TemplateState } from './port.ts';

/**
 * The parts of CubeAPI that the adapter reads, and the pure translations and choices.
 * Loose on purpose: unknown fields pass and a state is any string, so that a newer server does not break an old operator.
 */
const text = z
  .string()
  .nullish()
  .transform((value) => value ?? '');

export const jobSchema = z.object({ jobID: text, templateID: text });
export const templateSchema = z.object({
  templateID: z.string().min(1),
  status: text,
  lastError: text,
  imageInfo: text,
  jobID: text,
  createdAt: text,
  aliases: z
    .array(z.string())
    .nullish()
    .transform((aliases) => (aliases ?? []).map(plainName)),
});
export const listSchema = z.array(templateSchema);
export const buildSchema = z.object({
  status: text,
  progress: z
    .number()
    .nullish()
    .transform((value) => value ?? undefined)
    .catch(undefined),
  message: text,
});

/** One template as the list or the detail shows it. */
export type CubeTemplate = z.output<typeof templateSchema>;
type Build = z.output<typeof buildSchema>;

/** Settings that shape the create call. */
export interface CreateSettings {
  /** Whether the engine's egress CA is put into the image; the job fails where the CA is not installed. */
  withCubeCA: boolean;
  /** The registry speaks plain HTTP; needs CubeSandbox 0.7. */
  plainHttpRegistry: boolean;
}

const ENVD_PORT = 49_983;
const MIN_WRITABLE_MIB = 2048;

/** The image reference as it is sent, which the list later shows unchanged. */
const sentImage = (image: string, settings: Pick<CreateSettings, 'plainHttpRegistry'>): string =>
  settings.plainHttpRegistry ? `http://${image}` : image;

/** Body of POST /templates. `env` stays unset, for it would replace the image's own. */
export function createBody(spec: RegisterSpec, settings: CreateSettings): Record<string, unknown> {
  const { cpuMillis, memoryMiB, writableLayerMiB } = spec.resources;
  const writable = Math.ceil(Math.max(MIN_WRITABLE_MIB, writableLayerMiB ?? 0) / 1024);
  return {
    image: sentImage(spec.image, settings),
    name: spec.name,
    writableLayerSize: `${writable}G`,
    exposedPorts: [ENVD_PORT],
    probePort: ENVD_PORT,
    probePath: '/health',
    cpu: Math.ceil(cpuMillis),
    memory: Math.ceil(memoryMiB),
    instanceType: 'cubebox',
    networkType: 'tap',
    allowInternetAccess: true,
    ...(spec.registryAuth && {
      registryUsername: spec.registryAuth.username,
      registryPassword: spec.registryAuth.password,
    }),
    with_cube_ca: settings.withCubeCA,
  };
}

/** Ids of templates; anything else in a path could name a snapshot, which the same DELETE would remove. */
export const isTemplateId = (id: string): boolean => /^tpl-[A-Za-z0-9-]{1,128}$/.test(id);

const upper = (status: string) => status.toUpperCase();
const isFailed = (row: CubeTemplate) => upper(row.status) === 'FAILED';
const isUsable = (row: CubeTemplate) => ['READY', 'PARTIALLY_READY'].includes(upper(row.status));
const isGoing = (row: CubeTemplate) => upper(row.status) === 'DELETING';

const bareImage = (image: string) => image.replace(/^https?:\/\//, '');
const sameImage = (row: CubeTemplate, image: string) =>
  row.imageInfo !== '' && bareImage(row.imageInfo) === bareImage(image);
const isNamed = (row: CubeTemplate, name: string) => row.aliases.some((alias) => sameTemplate(alias, name));

/** Whether a row is provably this Skill's: its name, or its image from the Skill's own repository. */
export const isOwn = (row: CubeTemplate, { name, image }: Pick<TemplateRef, 'name' | 'image'>): boolean =>
  isNamed(row, name) || sameImage(row, image);

/** A row of the same image that has no name (yet): an alias appears only when a build is finished. */
const isNameless = (row: CubeTemplate, image: string) => row.aliases.length === 0 && sameImage(row, image);

/** What `allocate` does with the list it read. */
interface AllocatePlan {
  adopt?: CubeTemplate;
  /** Failed leftovers of this very registration. */
  remove: CubeTemplate[];
}

/**
 * Chooses the template to adopt: usable before unfinished, then the oldest, then by id, so that two writers choose alike.
 * A finished nameless row is not adopted: it may have been made with other settings.
 */
export function planAllocation(
  rows: readonly CubeTemplate[],
  ref: Pick<TemplateRef, 'name' | 'image'>,
  context: { held: ReadonlySet<string>; previous?: TemplateRef | undefined },
): AllocatePlan {
  const previousId = context.previous?.templateId;
  const free = rows.filter((row) => isTemplateId(row.templateID) && !isGoing(row));
  const remove = free.filter((row) =>
    row.templateID === previousId
      ? isOwn(row, ref)
      : !context.held.has(row.templateID) && isFailed(row) && (isNameless(row, ref.image) || isNamed(row, ref.name)),
  );
  const candidates = free.filter(
    (row) =>
      row.templateID !== previousId &&
      !context.held.has(row.templateID) &&
      !isFailed(row) &&
      (isNamed(row, ref.name)
        ? row.imageInfo === '' || sameImage(row, ref.image)
        : !isUsable(row) && isNameless(row, ref.image)),
  );
  const [adopt] = candidates.toSorted(
    (a, b) =>
      Number(isUsable(b)) - Number(isUsable(a)) ||
      a.createdAt.localeCompare(b.createdAt) ||
      a.templateID.localeCompare(b.templateID),
  );
  return adopt ? { adopt, remove } : { remove };
}

/** Rows of the same registration beside the ref's own that no slot holds. */
export const duplicatesOf = (
  rows: readonly CubeTemplate[],
  ref: TemplateRef,
  held: ReadonlySet<string>,
): CubeTemplate[] =>
  rows.filter(
    (row) =>
      isTemplateId(row.templateID) &&
      row.templateID !== ref.templateId &&
      !held.has(row.templateID) &&
      !isGoing(row) &&
      sameImage(row, ref.image) &&
      (row.aliases.length === 0 || isNamed(row, ref.name)),
  );

/** Translates a template's state; `build` adds progress and phase while it is under way. */
export function stateOf(row: CubeTemplate, ref: TemplateRef, build?: Build): TemplateState {
  const status = upper(row.status);
  if (isUsable(row) && row.aliases.length > 0 && !isNamed(row, ref.name)) {
    return { phase: 'Absent', message: `CubeSandbox shows ${row.templateID} under another name than ${ref.name}.` };
  }
  switch (status) {
    case 'READY':
      return { phase: 'Ready' };
    case 'PARTIALLY_READY':
      return { phase: 'Degraded', message: 'Not every node of CubeSandbox has the template yet.' };
    case 'FAILED':
      return failed(row, build);
    case 'DELETING':
      return { phase: 'Absent', message: 'CubeSandbox is deleting the template.' };
    default:
      return {
        phase: 'Building',
        ...(build?.progress !== undefined && { progress: build.progress }),
        ...(build?.message && { message: build.message.slice(0, 200) }),
      };
  }
}

function failed(row: CubeTemplate, build: Build | undefined): TemplateState {
  const cause = row.lastError || build?.message || '';
  const lines = build?.message && build.message !== cause ? [build.message] : [];
  return { phase: 'Failed', failure: buildFailure('cubesandbox', { text: cause, lines }) };
}

/** A list row as the port shows it. */
export const listed = (row: CubeTemplate): ListedTemplate => ({
  templateId: row.templateID,
  names: row.aliases,
  status: row.status || 'unknown',
  ...(row.imageInfo && { image: bareImage(row.imageInfo) }),
});

/** Throws EngineError `Invalid` unless the id has the form of a template's. */
export function checkedId(id: string): string {
  if (isTemplateId(id)) return id;
  throw new EngineError('Invalid', 'cubesandbox', 'The recorded template id does not have the form tpl-…');
}

import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { dispatch, type Route, type SeenRequest, type StubAnswer, StubServer } from './server.ts';

const PHASES = [
  'PULLING',
  'UNPACKING',
  'BUILDING_EXT4',
  'GENERATING_JSON',
  'DISTRIBUTING',
  'CREATING_TEMPLATE',
  'SNAPSHOTTING',
  'REGISTERING',
];

const createBody = z.object({
  image: z.string(),
  name: z.string().optional(),
  alias: z.string().optional(),
  writableLayerSize: z.string().optional(),
  exposedPorts: z.array(z.number()).optional(),
  cpu: z.number().optional(),
  memory: z.number().optional(),
  env: z.array(z.string()).optional(),
  dns: z.array(z.string()).optional(),
  registryPassword: z.string().optional(),
  with_cube_ca: z.boolean().optional(),
});
type CreateBody = z.output<typeof createBody>;

interface Job {
  jobID: string;
  status: string;
  phase: number;
  message?: string;
}

interface Template {
  templateID: string;
  alias: string | undefined;
  image: string;
  private: boolean;
  status: string;
  lastError?: string;
  createdAt: number;
  job: Job;
  inUse: boolean;
  recorded: { cpu: string; mem: string; env: string[]; withCubeCA: boolean };
}

const error = (status: number, message: string): StubAnswer => ({ status, json: { code: status, message } });
const master = (status: number, code: number, message: string) =>
  error(status, `CubeMaster returned error code ${code}: ${message}`);
const isRunning = (job: Job) => !['READY', 'FAILED'].includes(job.status);

/** CubeAPI's template routes over a CubeMaster in memory, with the answers of its code that the spec does not list. */
export class CubeStub extends StubServer {
  /** The accepted key; undefined: authentication is off. */
  key: string | undefined;
  masterDown = false;
  databaseDown = false;
  caMissing = false;
  /** The create route answers without a job, as when CubeMaster's answer was lost; `made`: it made one all the same. */
  jobless: 'made' | 'none' | undefined;
  /** Builds never leave RUNNING. */
  stuck = false;
  /** Builds pass through BUILT before READY, as from 0.7.1 on. */
  built = false;
  /** Only some nodes get the template. */
  partial = false;
  /** Failure texts of the next builds. */
  readonly failures: string[] = [];
  /** Overrides the state that is shown while a build runs. */
  runningStatus = 'RUNNING';
  deleteMode: 'normal' | 'locator-missing' | 'legacy' = 'normal';
  rootfsLost = false;
  /** The ENV of every image that is pulled. */
  imageEnv = ['PATH=/usr/bin', 'LANG=C.UTF-8'];
  /** Ids of snapshots that the list shows among the templates. */
  readonly snapshots: { templateID: string; imageInfo: string }[] = [];
  readonly templates = new Map<string, Template>();

  /** Marks a template as used by a sandbox. */
  use(templateID: string, inUse = true): void {
    const template = this.templates.get(templateID);
    if (template) template.inUse = inUse;
  }

  /** Lets all builds take one step. */
  tick(): void {
    for (const template of this.templates.values()) this.#step(template);
  }

  protected answer(request: SeenRequest): StubAnswer {
    const { path } = request;
    if (path === '/health') return { status: 200, json: { status: 'ok', sandboxes: 0 } };
    if (!this.#authorized(request)) return error(401, 'Unauthorized');
    if (path.startsWith('/v3/')) return { status: 404, text: '' };
    if (this.masterDown) return error(500, 'error sending request to CubeMaster');
    const routes: Route[] = [
      [/^POST \/templates$/, () => this.#create(request.body)],
      [/^GET \/templates$/, () => this.#list()],
      [/^GET \/templates\/aliases\/([^/]+)$/, (alias = '') => this.#alias(alias)],
      [/^PUT \/templates\/([^/]+)\/alias$/, (id = '') => this.#putAlias(id, request.body)],
      [
        /^GET \/templates\/([^/]+)\/builds\/([^/]+)\/(status|logs)$/,
        (id = '', job = '', what = '') => this.#build(id, job, what === 'logs'),
      ],
      [/^POST \/templates\/([^/]+)(?:\/builds\/[^/]+)?$/, (id = '') => this.#redo(id)],
      [/^GET \/templates\/([A-Za-z0-9-]+)$/, (id = '') => this.#detail(id)],
      [/^DELETE \/templates\/([A-Za-z0-9-]+)$/, (id = '') => this.#delete(id)],
      [/^PATCH \/templates\/([A-Za-z0-9-]+)$/, () => error(501, 'not implemented')],
    ];
    return dispatch(routes, request) ?? error(404, 'not found');
  }

  #authorized({ headers }: SeenRequest): boolean {
    if (this.key === undefined) return true;
    const bearer = headers.authorization;
    return (bearer === undefined ? headers['x-api-key'] : bearer.replace(/^Bearer /, '')) === this.key;
  }

  #detail(idOrAlias: string): StubAnswer {
    const template = this.#lookup(idOrAlias);
    if (!template) return master(404, 130404, 'template not found');
    this.#step(template);
    const { imageInfo: _, ...detail } = row(template);
    const replicas = ['READY', 'PARTIALLY_READY'].includes(template.status) ? [{ node: 'n1', status: 'READY' }] : [];
    return { status: 200, json: { ...detail, replicas, createRequest: template.recorded, networkType: 'tap' } };
  }

  #create(raw: string): StubAnswer {
    const parsed = createBody.safeParse(safeJson(raw));
    if (!parsed.success) return { status: 422, text: 'Failed to deserialize the JSON body into the target type' };
    const body = parsed.data;
    const problem = refusal(body);
    if (problem) return problem;
    if (this.databaseDown) return master(400, 130400, 'dial tcp 10.0.0.5:3306: connect: connection refused');
    const accepted = { jobID: '', templateID: '', status: 'accepted', phase: '', progress: 0 };
    if (this.jobless === 'none') return { status: 202, json: accepted };
    const template = this.#make(body);
    if (this.jobless === 'made') return { status: 202, json: accepted };
    const { jobID } = template.job;
    return {
      status: 202,
      json: { jobID, templateID: template.templateID, status: 'PENDING', phase: 'PULLING', progress: 0 },
    };
  }

  #make(body: CreateBody): Template {
    const template: Template = {
      templateID: `tpl-${randomUUID().replaceAll('-', '').slice(0, 16)}`,
      alias: aliasFrom(body.alias ?? body.name),
      image: body.image,
      private: body.registryPassword !== undefined,
      status: 'PENDING',
      createdAt: Date.now() + this.templates.size,
      job: { jobID: randomUUID(), status: 'PENDING', phase: 0 },
      inUse: false,
      recorded: {
        cpu: `${body.cpu ?? 2000}m`,
        mem: `${body.memory ?? 2000}Mi`,
        env: body.env ?? this.imageEnv,
        withCubeCA: body.with_cube_ca ?? true,
      },
    };
    this.templates.set(template.templateID, template);
    return template;
  }

  #step(template: Template): void {
    const { job } = template;
    if (!isRunning(job)) return;
    if (job.status === 'BUILT') {
      this.#finish(template);
      return;
    }
    job.status = this.runningStatus;
    template.status = this.runningStatus;
    if (this.stuck) return;
    const caFails = this.caMissing && template.recorded.withCubeCA;
    const failure = caFails ? 'cube egress CA file not found' : job.phase === 1 ? this.failures.shift() : undefined;
    if (failure !== undefined) {
      this.#break(template, failure);
      return;
    }
    job.phase += 1;
    if (job.phase < PHASES.length) return;
    if (this.built) job.status = 'BUILT';
    else this.#finish(template);
  }

  /** The alias is claimed at the very end and taken from whoever had it. */
  #finish(template: Template): void {
    for (const other of this.templates.values()) {
      if (other !== template && other.alias === template.alias && other.status !== 'FAILED' && !isRunning(other.job)) {
        other.alias = undefined;
      }
    }
    template.job.status = 'READY';
    template.status = this.partial ? 'PARTIALLY_READY' : 'READY';
  }

  #break(template: Template, message: string): void {
    template.job = { ...template.job, status: 'FAILED', message };
    template.status = 'FAILED';
    template.lastError = message;
  }

  #list(): StubAnswer {
    for (const template of this.templates.values()) this.#step(template);
    const snapshots = this.snapshots.map((snapshot) => ({ ...snapshot, public: false, status: 'READY', aliases: [] }));
    return { status: 200, json: [...[...this.templates.values()].map(row), ...snapshots] };
  }

  #alias(alias: string): StubAnswer {
    if (aliasFrom(alias) === undefined) return error(400, 'invalid alias');
    const template = [...this.templates.values()].find((t) => shownAlias(t) === alias);
    return template
      ? { status: 200, json: { templateID: template.templateID, public: false } }
      : error(404, 'alias not found');
  }

  #putAlias(id: string, raw: string): StubAnswer {
    const body = z.object({ alias: z.string().nullable() }).safeParse(safeJson(raw));
    if (!body.success) return error(400, 'alias is malformed');
    const template = this.templates.get(id);
    if (!template) return master(404, 130404, 'template not found');
    const alias = body.data.alias === null ? undefined : aliasFrom(body.data.alias);
    if (body.data.alias !== null && alias === undefined) return error(400, 'alias is malformed');
    if (template.status !== 'READY') return master(409, 130409, 'template is not READY');
    if (alias !== undefined) {
      for (const other of this.templates.values()) if (other.alias === alias) other.alias = undefined;
    }
    template.alias = alias;
    return { status: 200, json: row(template) };
  }

  #build(templateID: string, jobID: string, logs: boolean): StubAnswer {
    const template = this.templates.get(templateID);
    if (!template || template.job.jobID !== jobID) return master(500, 130593, 'record not found');
    this.#step(template);
    const { job } = template;
    const done = job.status === 'READY' || job.status === 'BUILT';
    const progress = done || job.status === 'FAILED' ? 100 : Math.floor((job.phase * 100) / PHASES.length);
    const message = job.message ?? (done ? 'READY' : PHASES[job.phase]);
    const status = job.status === 'READY' ? 'ready' : job.status === 'FAILED' ? 'error' : 'building';
    const base = { buildID: jobID, templateID, status, progress };
    return { status: 200, json: logs ? { ...base, lines: [message] } : { ...base, message } };
  }

  #redo(id: string): StubAnswer {
    const template = this.#lookup(id);
    if (!template) return master(400, 130400, 'template not found');
    if (isRunning(template.job)) return master(400, 130400, 'a job of this template is already running');
    if (template.job.status === 'FAILED' && template.job.phase === 0) {
      return master(400, 130400, 'redo is not possible in phase PULLING');
    }
    template.job = { jobID: randomUUID(), status: 'PENDING', phase: 0 };
    template.status = 'PENDING';
    if (this.rootfsLost && template.private) this.#break(template, 'pull rootfs: unauthorized');
    const { jobID } = template.job;
    return {
      status: 202,
      json: { jobID, templateID: template.templateID, status: 'PENDING', phase: 'PULLING', progress: 0 },
    };
  }

  #delete(idOrAlias: string): StubAnswer {
    const template = this.#lookup(idOrAlias);
    if (!template || this.deleteMode === 'locator-missing') return master(404, 130404, 'cleanup locator missing');
    if (template.inUse || isRunning(template.job)) {
      const message = template.inUse ? 'template is in use' : 'template has an active job';
      return this.deleteMode === 'legacy' ? master(400, 130400, message) : master(409, 130409, message);
    }
    this.templates.delete(template.templateID);
    return { status: 204 };
  }

  #lookup(idOrAlias: string): Template | undefined {
    return this.templates.get(idOrAlias) ?? [...this.templates.values()].find((t) => shownAlias(t) === idOrAlias);
  }
}

const shownAlias = (t: Template) => (['READY', 'PARTIALLY_READY'].includes(t.status) ? t.alias : undefined);

function row(template: Template) {
  const alias = shownAlias(template);
  return {
    templateID: template.templateID,
    public: false,
    instanceType: 'cubebox',
    status: template.status,
    ...(template.lastError && { lastError: template.lastError }),
    createdAt: new Date(template.createdAt).toISOString(),
    imageInfo: template.image,
    jobID: template.job.jobID,
    aliases: alias ? [alias] : [],
  };
}

/** Path and tag are stripped; what is then no alias is dropped without a word. */
function aliasFrom(name: string | undefined): string | undefined {
  const plain = name?.replace(/^.*\//, '').replace(/:.*$/, '');
  return plain && /^[a-z0-9][a-z0-9-]{0,63}$/.test(plain) && !/^(?:tpl|snap)-/.test(plain) ? plain : undefined;
}

function refusal(body: CreateBody): StubAnswer | undefined {
  if (body.image.trim() === '') return error(400, 'image is required');
  if (!/^[A-Za-z0-9._:/@-]+$/.test(body.image)) return master(400, 130400, 'source_image_ref: invalid characters');
  if (!body.writableLayerSize) return master(400, 130400, 'writable_layer_size is required');
  if (body.dns?.some((server) => !/^[0-9.]+$/.test(server))) return master(400, 130400, 'dns: invalid server');
  const custom = (body.exposedPorts ?? []).filter((port) => port !== 49_983);
  return custom.length > 3 ? master(400, 130400, 'at most 3 exposed ports') : undefined;
}

function safeJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

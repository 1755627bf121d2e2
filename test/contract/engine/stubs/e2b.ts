import { randomBytes, randomUUID } from 'node:crypto';
import {
  type Build,
  createBody,
  type Entry,
  error,
  head,
  isBusy,
  type Outcome,
  parse,
  readName,
  startBody,
  supersede,
  type Template,
  UUID,
  WAITING_LIMIT_MS,
} from './e2b.rules.ts';
import { dispatch, type Route, type SeenRequest, type StubAnswer, StubServer } from './server.ts';

const newId = () => [...randomBytes(20)].map((byte) => 'abcdefghijklmnopqrstuvwxyz0123456789'[byte % 36]).join('');

/** E2B's template API in memory: the published routes, plus the answers of its code that the spec does not list. */
export class E2BStub extends StubServer {
  /** API key → team. */
  readonly keys = new Map([
    ['e2b_aaaaaaaaaaaaaaaa', 'acme'],
    ['e2b_bbbbbbbbbbbbbbbb', 'other'],
  ]);
  readonly templates = new Map<string, Template>();
  readonly deleted = new Set<string>();
  /** Image reference → what a pull of it yields now; and what the base layer cache holds. */
  readonly registry = new Map<string, string>();
  readonly #baseCache = new Map<string, string>();
  healthy = true;
  healthStatus: 200 | 204 = 200;
  maxBuilds = 20;
  builders = 1;
  /** Polls that a started build stays `building`. */
  pollsToFinish = 2;
  /** Ends of the next builds, first come first served; default ready. */
  readonly outcomes: Outcome[] = [];
  /** Overrides the state that is shown while a build runs. */
  runningStatus = 'building';

  /** Marks a template as in use. */
  use(templateID: string, sandboxes: Template['sandboxes']): void {
    this.#template(templateID).sandboxes = sandboxes;
  }

  /** What the base layer of a build was made from. */
  contentOf(buildID: string): string | undefined {
    return [...this.templates.values()].flatMap((t) => t.builds).find((b) => b.buildID === buildID)?.content;
  }

  #template(id: string): Template {
    const template = this.templates.get(id);
    if (!template) throw new Error(`no template ${id}`);
    return template;
  }

  protected answer(request: SeenRequest): StubAnswer {
    if (request.path === '/health') return this.#health();
    const team = this.#team(request);
    if (!team) return error(401, 'Invalid API key, please visit the documentation');
    const gone = () => error(410, 'This endpoint is no longer supported');
    const routes: Route[] = [
      [/^POST \/v3\/templates$/, () => this.#create(request, team)],
      [/^GET \/v2\/templates$/, () => this.#list(request, team)],
      [
        /^POST \/v2\/templates\/([^/]+)\/builds\/([^/]+)$/,
        (id = '', build = '') => this.#start(request, team, id, build),
      ],
      [
        /^GET \/templates\/([^/]+)\/builds\/([^/]+)\/(status|logs)$/,
        (id = '', build = '', what = '') => this.#build(request, team, id, build, what === 'logs'),
      ],
      [/^GET \/templates\/aliases\/([^/]+)$/, (alias = '') => this.#alias(team, alias)],
      [/^GET \/templates\/([^/]+)$/, (id = '') => this.#detail(team, id)],
      [/^DELETE \/templates\/([^/]+)$/, (id = '') => this.#delete(team, id)],
      [/^POST \/(?:v2\/)?templates(?:\/|$)/, gone],
    ];
    return dispatch(routes, request) ?? error(404, 'no matching operation was found');
  }

  #health(): StubAnswer {
    if (!this.healthy) return error(503, 'Service is unavailable');
    return this.healthStatus === 204 ? { status: 204 } : { status: 200, text: 'Health check successful' };
  }

  #team(request: SeenRequest): string | undefined {
    const key = request.headers['x-api-key'] ?? '';
    return key.startsWith('e2b_') ? this.keys.get(key) : undefined;
  }

  #create(request: SeenRequest, team: string): StubAnswer {
    const body = parse(request.body, createBody);
    if ('problem' in body) return error(400, `validation error: ${body.problem}`);
    const named = readName(body.value.name, team);
    if ('problem' in named) return error(400, named.problem);
    const { cpuCount = 2, memoryMB = 1024 } = body.value;
    if (!Number.isInteger(cpuCount) || cpuCount < 1 || cpuCount > 32 || (cpuCount > 1 && cpuCount % 2 === 1)) {
      return error(400, 'CPU count must be 1 or an even number up to 32');
    }
    if (memoryMB < 128 || memoryMB % 2 !== 0) return error(400, 'Memory must be an even number of at least 128 MB');
    const { alias } = named;
    if (this.templates.has(alias)) return error(409, `Alias '${alias}' is already used as a template ID`);
    if (this.deleted.has(alias)) return error(404, 'Template has been deleted and cannot be rebuilt');
    const tags = body.value.tags ?? (named.tag ? [named.tag] : []);
    return this.#allocate(team, alias, tags.length > 0 ? tags : ['default'], { cpuCount, memoryMB });
  }

  #allocate(team: string, alias: string, tags: string[], size: { cpuCount: number; memoryMB: number }): StubAnswer {
    const known = [...this.templates.values()].find((t) => t.alias === alias);
    if (known && known.team !== team) return error(403, `Alias '${alias}' is already owned by another team`);
    const busy = [...this.templates.values()].filter((t) => t.team === team).flatMap((t) => t.builds.filter(isBusy));
    const other = busy.filter((build) => !known?.builds.includes(build));
    if (other.length >= this.maxBuilds) {
      return error(429, `you have reached the maximum number of concurrent template builds (${this.maxBuilds})`);
    }
    const template = known ?? { templateID: newId(), team, alias, builds: [], sandboxes: undefined };
    this.templates.set(template.templateID, template);
    supersede(template, tags, (build) => build.status === 'waiting');
    const build: Build = {
      buildID: randomUUID(),
      status: 'waiting',
      createdAt: this.#now() + template.builds.length,
      tags,
      ...size,
      logs: [],
      polls: 0,
    };
    template.builds.unshift(build);
    return {
      status: 202,
      json: {
        templateID: template.templateID,
        buildID: build.buildID,
        public: false,
        names: [`${team}/${alias}`],
        tags,
        aliases: [alias],
      },
    };
  }

  #start(request: SeenRequest, team: string, templateID: string, buildID: string): StubAnswer {
    if (!UUID.test(buildID)) return error(400, `Invalid build ID: ${buildID}`);
    const found = this.#find(team, templateID, buildID);
    if (!found.build) return found.missing;
    const { template, build } = found;
    const body = parse(request.body, startBody);
    if ('problem' in body) return error(400, `validation error: ${body.problem}`);
    if (build.status !== 'waiting') return error(400, 'build is not in waiting state');
    if (this.builders === 0) return error(503, 'No builder node is available');
    const { fromImage, fromTemplate, force } = body.value;
    if ((fromImage === undefined) === (fromTemplate === undefined)) {
      return error(500, 'Error when starting template build: failed to set template source: exactly one is needed');
    }
    supersede(template, build.tags, (other) => other !== build && isBusy(other));
    build.status = this.runningStatus;
    if (fromTemplate !== undefined) this.#end(build, { status: 'error', step: 'base', message: 'template not found' });
    if (fromImage !== undefined) build.content = this.#base(fromImage, force === true);
    return { status: 202 };
  }

  /** The key of the base layer is the reference, not the digest: a moved tag yields old content. */
  #base(fromImage: string, force: boolean): string {
    const cached = force ? undefined : this.#baseCache.get(fromImage);
    const content = cached ?? this.registry.get(fromImage) ?? fromImage;
    this.#baseCache.set(fromImage, content);
    return content;
  }

  #build(request: SeenRequest, team: string, templateID: string, buildID: string, logs: boolean): StubAnswer {
    const template = this.templates.get(templateID);
    if (template && template.team !== team) return error(403, "You don't have access to this template");
    const build = template?.builds.find((b) => b.buildID === buildID);
    if (!build) return error(400, `Build '${buildID}' not found`);
    const limit = Number(request.query.get('limit') ?? 100);
    if (limit > 100) return error(400, 'validation error: limit must be at most 100');
    if (logs) {
      const backward = request.query.get('direction') === 'backward';
      const ordered = backward ? build.logs.toReversed() : build.logs;
      return { status: 200, json: { logs: ordered.slice(0, limit) } };
    }
    this.#tick(build);
    const offset = Number(request.query.get('logsOffset') ?? 0);
    const entries = build.status === 'waiting' ? [] : build.logs.slice(offset, offset + limit);
    const { status, reason } = build;
    return {
      status: 200,
      json: {
        templateID,
        buildID,
        status,
        logs: entries.map((entry) => entry.message),
        logEntries: entries,
        ...(status === 'error' && { reason }),
      },
    };
  }

  #tick(build: Build): void {
    if (build.status === 'waiting' && this.#now() - build.createdAt > WAITING_LIMIT_MS) {
      this.#end(build, {
        status: 'error',
        step: 'base',
        message: 'build is in waiting state for too long',
        silent: true,
      });
    }
    if (!isBusy(build) || build.status === 'waiting') return;
    build.status = this.runningStatus;
    build.polls += 1;
    build.logs.push(this.#entry(`step ${build.polls}`, 'base'));
    if (build.polls > this.pollsToFinish) this.#end(build, this.outcomes.shift() ?? { status: 'ready' });
  }

  #end(build: Build, outcome: Outcome): void {
    build.status = outcome.status;
    if (outcome.status !== 'error') return;
    const { message = 'failed', step = 'base' } = outcome;
    if (outcome.silent) build.logs = [];
    else build.logs.push(this.#entry(message, step));
    build.reason = { message, step, logEntries: outcome.silent ? [] : build.logs.slice(-1) };
  }

  #detail(team: string, templateID: string): StubAnswer {
    const template = this.templates.get(templateID);
    if (!template) return error(404, `Template '${templateID}' not found`);
    if (template.team !== team) return error(403, "You don't have access to this template");
    const builds = template.builds.map(({ buildID, status, createdAt, cpuCount, memoryMB }) => {
      const at = new Date(createdAt).toISOString();
      return { buildID, status, createdAt: at, updatedAt: at, cpuCount, memoryMB };
    });
    return { status: 200, json: { ...head(template), spawnCount: 0, builds } };
  }

  #alias(team: string, alias: string): StubAnswer {
    const named = readName(alias, team);
    if ('problem' in named) return error(400, named.problem);
    const template = [...this.templates.values()].find((t) => t.alias === named.alias || t.templateID === named.alias);
    const resolvable = template?.builds.some((build) => build.tags.includes(named.tag ?? 'default'));
    if (!template || !resolvable) return error(404, `Template '${alias}' not found`);
    if (template.team !== team) return error(403, "You don't have access to this template alias");
    return { status: 200, json: { templateID: template.templateID, public: false } };
  }

  #list(request: SeenRequest, team: string): StubAnswer {
    const limit = Number(request.query.get('limit') ?? 100);
    if (limit > 100) return error(400, 'validation error: limit must be at most 100');
    const offset = Number(request.query.get('nextToken') ?? 0);
    const own = [...this.templates.values()].filter((t) => t.team === team);
    const rows = own.slice(offset, offset + limit).map((template) => {
      const [build] = template.builds;
      return { ...head(template), buildID: build?.buildID, buildStatus: build?.status, cpuCount: build?.cpuCount };
    });
    const more = offset + limit < own.length;
    return { status: 200, json: rows, ...(more && { headers: { 'x-next-token': String(offset + limit) } }) };
  }

  #delete(team: string, idOrAlias: string): StubAnswer {
    const template =
      this.templates.get(idOrAlias) ??
      [...this.templates.values()].find((t) => t.alias === idOrAlias && t.team === team);
    if (!template) return error(404, `Template '${idOrAlias}' not found`);
    if (template.team !== team) return error(403, "You don't have access to this template");
    if (template.sandboxes) {
      const message = `cannot delete template '${template.templateID}' because there are ${template.sandboxes} sandboxes using it`;
      return error(400, message);
    }
    this.templates.delete(template.templateID);
    this.deleted.add(template.templateID);
    return { status: 204 };
  }

  #find(team: string, templateID: string, buildID: string) {
    const template = this.templates.get(templateID);
    if (template && template.team !== team) return { missing: error(403, "You don't have access to this template") };
    const build = template?.builds.find((b) => b.buildID === buildID);
    return template && build
      ? { template, build, missing: error(500, '') }
      : { missing: error(404, `Build '${buildID}' not found`) };
  }

  #entry(message: string, step: string): Entry {
    return { timestamp: new Date(this.#now()).toISOString(), level: 'info', message, step };
  }

  #now(): number {
    return Date.now() + this.skew;
  }
}

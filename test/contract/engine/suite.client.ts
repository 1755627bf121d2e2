import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { PolicyError } from '../../../src/base/errors.ts';
import { type Advance, advance, type RegistrationRecord } from '../../../src/engine/advance.ts';
import { EngineError } from '../../../src/engine/errors.ts';
import type { EngineConnection } from '../../../src/engine/http.ts';
import { settingsHash, templateName } from '../../../src/engine/names.ts';
import type { RegisterSpec, RegistryAuth, SandboxEngine, TemplateRef } from '../../../src/engine/port.ts';
import type { Engine } from '../../../src/protocol/types.ts';
import type { StubServer } from './stubs/server.ts';
import { freshDigest } from './suite.ts';

/** What the client suite needs of one adapter on its stub. */
export interface ClientRig extends AsyncDisposable {
  kind: Engine;
  server: StubServer;
  /** A fresh adapter, as after a restart. */
  engine(options?: Partial<EngineConnection>): SandboxEngine;
  /** Ids of all templates at the engine. */
  templates(): string[];
  /** The next build ends with this text. */
  failNext(text: string): void;
  /** What the engine shows while it builds. */
  showWhileBuilding(status: string): void;
  /** The build never ends. */
  hang(): void;
  /** Somebody removes the template at the engine. */
  lose(id: string): void;
  /** A sandbox runs on it. */
  use(id: string): void;
  listPath: string;
}

const never = new AbortController().signal;

/** A spec as the controller makes it. */
export function specOf(engine: Engine, digest = freshDigest()): RegisterSpec {
  const resources = { cpuMillis: 1000, memoryMiB: 1024, writableLayerMiB: 2048 };
  const identity = { installation: 'i', namespace: 'team-a', skill: 'market.docs.pdf', engine, imageDigest: digest };
  return {
    name: templateName('pdf', { ...identity, settings: settingsHash({ resources }) }),
    image: `registry.example.com/skills/i/team-a/pdf-${engine}@${digest}`,
    resources,
    registryAuth: { username: 'puller', password: `Passw0rd/${randomBytes(9).toString('hex')}` },
  };
}

/** The candidate of a Skill's status: the only thing that survives between two passes. */
class Status {
  ref: TemplateRef | undefined;
  writes = 0;
  readonly held = new Set<string>();

  record(retryFailed = false): RegistrationRecord {
    return { ref: this.ref, startedAt: 0, held: this.held, retryFailed };
  }

  async pass(rig: ClientRig, spec: RegisterSpec, retryFailed = false, now = 0): Promise<Advance> {
    const result = await advance(rig.engine(), spec, this.record(retryFailed), now, never);
    if (result.step === 'persist') {
      this.ref = result.ref;
      this.writes += 1;
    }
    return result;
  }

  /** Passes until a step is `ready` or `failed`; errors count as passes that died. */
  async settle(rig: ClientRig, spec: RegisterSpec): Promise<Advance> {
    for (let i = 0; i < 60; i++) {
      const result = await this.pass(rig, spec).catch((error: unknown) => error as PolicyError);
      if (!(result instanceof Error) && (result.step === 'ready' || result.step === 'failed')) return result;
    }
    throw new Error('the registration does not settle');
  }
}

const failure = (promise: Promise<unknown>): Promise<EngineError> =>
  promise.then(
    () => Promise.reject(new Error('it did not fail')),
    (error: EngineError) => error,
  );

/** The behaviour that the controller relies on, the same for every adapter. */
export function clientContract(kind: Engine, open: () => Promise<ClientRig>): void {
  const withRig = (body: (rig: ClientRig, spec: RegisterSpec, status: Status) => Promise<void>) => async () => {
    await using rig = await open();
    await body(rig, specOf(kind), new Status());
  };

  describe(`the ${kind} adapter registers`, () => {
    it(
      'one template, from the status alone',
      withRig(async (rig, spec, status) => {
        expect(await status.settle(rig, spec)).toMatchObject({
          step: 'ready',
          ref: { name: spec.name, image: spec.image },
          duplicates: [],
        });
        expect(rig.templates()).toEqual([status.ref?.templateId]);
        expect(status.writes).toBe(1);
      }),
    );

    it.each(['lost before it reached the engine', 'lost after it took effect'])(
      'one template when any single answer is %s',
      withRigAnd(async (rig, when) => {
        let calls = Number.POSITIVE_INFINITY;
        for (let k = 0; k < calls; k++) {
          rig.server.takeCalls();
          const fresh = specOf(kind);
          const before = new Set(rig.templates());
          rig.server.fail({ path: /^\/(v\d\/)?templates/, skip: k, answer: 'reset', after: when.includes('after') });
          await new Status().settle(rig, fresh);
          calls = Math.min(calls, rig.server.takeCalls().length);
          expect({ k, made: rig.templates().filter((id) => !before.has(id)).length }).toEqual({ k, made: 1 });
        }
        expect(calls).toBeGreaterThan(4);
      }),
    );

    it(
      'the same template when the status write is lost',
      withRig(async (rig, spec, status) => {
        const lost = await rig.engine().allocate(spec, { held: new Set() }, never);
        expect(await status.settle(rig, spec)).toMatchObject({ step: 'ready', ref: { templateId: lost.templateId } });
        expect(rig.templates()).toHaveLength(1);
        const restored = new Status();
        expect(await restored.settle(rig, spec)).toMatchObject({ ref: { templateId: lost.templateId } });
      }),
    );

    it(
      'so that two writers at once leave one template',
      withRig(async (rig, spec, status) => {
        const other = new Status();
        await Promise.all([status.pass(rig, spec), other.pass(rig, spec)]);
        const ready = await status.settle(rig, spec);
        if (ready.step !== 'ready') throw new Error('not ready');
        for (let i = 0; i < 30; i++) await rig.engine().list(never);
        const rest = await rig.engine().duplicates(ready.ref, new Set(), never);
        for (const duplicate of rest) await rig.engine().delete(duplicate, never);
        expect(rig.templates()).toEqual([ready.ref.templateId]);
      }),
    );

    it(
      'again when the engine lost the template',
      withRig(async (rig, spec, status) => {
        await status.settle(rig, spec);
        const first = status.ref?.templateId ?? '';
        rig.lose(first);
        expect(await rig.engine().exists(first, never)).toBe(false);
        expect(await status.settle(rig, spec)).toMatchObject({ step: 'ready' });
        expect(rig.templates()).toEqual([status.ref?.templateId]);
        expect(status.ref?.templateId).not.toBe(first);
      }),
    );

    it(
      'again after a failed build, without a leftover',
      withRig(async (rig, spec, status) => {
        rig.failNext('failed to pull: access denied');
        expect(await status.settle(rig, spec)).toMatchObject({
          step: 'failed',
          failure: {
            reason: 'EngineImagePullFailed',
            policy: 'Retry',
            message: expect.stringContaining('access denied'),
          },
        });
        expect((await status.pass(rig, spec, true)).step).toBe('persist');
        expect((await status.settle(rig, spec)).step).toBe('ready');
        expect(rig.templates()).toEqual([status.ref?.templateId]);
      }),
    );

    it(
      'nothing of an image without a digest',
      withRig(async (rig, spec) => {
        const error = await failure(
          rig.engine().allocate({ ...spec, image: 'r/x:latest' }, { held: new Set() }, never),
        );
        expect(error).toMatchObject({ kind: 'Invalid', policy: 'Stalled' });
        expect(rig.server.takeCalls()).toEqual([]);
      }),
    );
  });

  function withRigAnd(body: (rig: ClientRig, value: string) => Promise<void>) {
    return async (value: string) => {
      await using rig = await open();
      await body(rig, value);
    };
  }

  describe(`the ${kind} adapter watches`, () => {
    it(
      'an unknown state as building, never as an error',
      withRig(async (rig, spec, status) => {
        rig.showWhileBuilding('hibernating');
        await status.pass(rig, spec);
        await status.pass(rig, spec);
        expect((await rig.engine().poll(status.ref as TemplateRef, never)).phase).toBe('Building');
      }),
    );

    it(
      'a build past its deadline as stuck',
      withRig(async (rig, spec, status) => {
        rig.hang();
        await status.pass(rig, spec);
        await status.pass(rig, spec);
        const late = rig.engine().buildDeadlineMs + 1;
        expect(await status.pass(rig, spec, false, late)).toMatchObject({
          step: 'failed',
          failure: { reason: 'EngineStuck', policy: 'Retry' },
        });
      }),
    );

    it(
      'a foreign template under a forged id as absent',
      withRig(async (rig, spec, status) => {
        const victim = new Status();
        await victim.settle(rig, specOf(kind));
        status.ref = { ...(victim.ref as TemplateRef), name: spec.name, image: spec.image };
        expect((await rig.engine().poll(status.ref, never)).phase).toBe('Absent');
        expect((await failure(rig.engine().delete(status.ref, never))).kind).toBe('Foreign');
        await status.settle(rig, spec);
        expect(rig.templates().toSorted()).toEqual([victim.ref?.templateId, status.ref?.templateId].toSorted());
      }),
    );

    it(
      'ids, aliases and the whole list',
      withRig(async (rig, spec, status) => {
        await status.settle(rig, spec);
        const id = status.ref?.templateId ?? '';
        const engine = rig.engine();
        expect(await engine.exists(id, never)).toBe(true);
        expect(await engine.resolve(id, never)).toBe(id);
        expect(await engine.resolve(spec.name, never)).toBe(id);
        expect(await engine.resolve('unknown-name', never)).toBeUndefined();
        expect(await engine.resolve('../health', never)).toBeUndefined();
        expect(await engine.list(never)).toMatchObject([{ templateId: id, names: [spec.name] }]);
      }),
    );
  });

  describe(`the ${kind} adapter deletes`, () => {
    it(
      'its own template, once',
      withRig(async (rig, spec, status) => {
        await status.settle(rig, spec);
        const ref = status.ref as TemplateRef;
        expect(await rig.engine().delete(ref, never)).toBe('deleted');
        expect(await rig.engine().delete(ref, never)).toBe('absent');
        expect(rig.templates()).toEqual([]);
      }),
    );

    it(
      'not while a sandbox uses it',
      withRig(async (rig, spec, status) => {
        await status.settle(rig, spec);
        rig.use(status.ref?.templateId ?? '');
        const error = await failure(rig.engine().delete(status.ref as TemplateRef, never));
        expect(error).toMatchObject({ kind: 'InUse', policy: 'Retry', reason: 'TemplateInUse' });
      }),
    );

    it(
      'and knows that it did when the answer was lost',
      withRig(async (rig, spec, status) => {
        await status.settle(rig, spec);
        rig.server.fail({ method: 'DELETE', path: /./, answer: { status: 504 }, after: true });
        expect(await rig.engine().delete(status.ref as TemplateRef, never)).toBe('deleted');
      }),
    );

    it(
      'never what does not look like a template',
      withRig(async (rig, spec) => {
        for (const templateId of ['snap-1', '', '../x', 'UPPER']) {
          const ref = { templateId, buildId: '', name: spec.name, image: spec.image };
          expect(await failure(rig.engine().delete(ref, never))).toMatchObject({ kind: 'Invalid' });
        }
        expect(rig.server.takeCalls()).toEqual([]);
      }),
    );
  });

  describe(`the ${kind} adapter fails`, () => {
    it.each([
      ['401', { status: 401, json: { code: 401, message: 'Invalid API key' } }, 'Auth', 'Waiting'],
      ['a server error', { status: 500, json: { code: 500, message: 'boom' } }, 'Unavailable', 'Retry'],
      ['a lost connection', 'reset', 'Unavailable', 'Retry'],
      ['silence', 'hang', 'Unavailable', 'Retry'],
      ['a redirect', { status: 302, headers: { location: 'http://evil.example' } }, 'Config', 'Waiting'],
      ['a page instead of JSON', { status: 200, text: '<html>' }, 'Unknown', 'Retry'],
      ['another shape', { status: 200, json: { rows: [] } }, 'Unknown', 'Retry'],
      ['too many requests', { status: 429, headers: { 'retry-after': '7' } }, 'Quota', 'Retry'],
    ] as const)('on %s with a kind and a policy', async (_name, answer, expected, policy) => {
      await using rig = await open();
      rig.server.fail({ path: new RegExp(`^${rig.listPath}$`), answer });
      const error = await failure(rig.engine({ timeoutMs: 200 }).list(never));
      expect(error).toBeInstanceOf(EngineError);
      expect(error).toBeInstanceOf(PolicyError);
      expect(error).toMatchObject({ kind: expected, policy });
      if (expected === 'Quota') expect(error.retryAfterMs).toBe(7000);
      if (policy === 'Retry' && expected === 'Unavailable') expect(error.message).toMatch(/^engine unavailable: /);
    });

    it(
      'when nothing listens',
      withRig(async (rig) => {
        const engine = rig.engine({ url: 'http://127.0.0.1:1' });
        expect(await failure(engine.list(never))).toMatchObject({
          kind: 'Unavailable',
          message: expect.stringContaining('ECONNREFUSED'),
        });
        expect(await engine.health(never)).toMatchObject({ reachable: false, authenticated: false });
      }),
    );

    it(
      'on an answer above the cap, without reading on',
      withRig(async (rig) => {
        rig.server.fail({
          method: 'GET',
          path: /templates/,
          answer: { status: 200, text: ' '.repeat(40 * 1024 * 1024) },
        });
        expect((await failure(rig.engine().list(never))).message).toContain('larger than');
      }),
    );

    it(
      'at once when the caller aborts, with the caller’s reason',
      withRig(async (rig, spec) => {
        const caller = new AbortController();
        const reason = new Error('lease lost');
        rig.server.fail({ path: /./, times: 99, answer: 'hang' });
        const running = failure(rig.engine().allocate(spec, { held: new Set() }, caller.signal));
        caller.abort(reason);
        expect(await running).toBe(reason);
      }),
    );

    it(
      'without the registry password or the key in any text',
      withRig(async (rig, spec, status) => {
        const key = async () => ({ value: 'e2b_aaaaaaaaaaaaaaaa' });
        const { password } = spec.registryAuth as RegistryAuth;
        const message = `bad credentials puller:${password} and e2b_aaaaaaaaaaaaaaaa`;
        rig.failNext(message);
        const failed = await status.settle(rig, spec);
        rig.server.fail({ method: 'POST', path: /./, answer: { status: 500, json: { code: 500, message } } });
        const error = await failure(
          rig
            .engine({ key })
            .allocate({ ...specOf(kind), registryAuth: { username: 'puller', password } }, { held: new Set() }, never),
        );
        const shown = JSON.stringify([failed, error.message, status.ref]);
        expect(shown).toContain('bad credentials');
        expect(shown).not.toContain(password);
        expect(shown).not.toContain('e2b_aaaa');
      }),
    );

    it(
      'rather than send the key to a host that its Secret does not allow',
      withRig(async (rig) => {
        const key = async () => ({ value: 'e2b_aaaaaaaaaaaaaaaa', hosts: ['api.example.com'] });
        expect(await failure(rig.engine({ key }).list(never))).toMatchObject({ kind: 'Auth', policy: 'Waiting' });
        expect(rig.server.takeCalls()).toEqual([]);
      }),
    );

    it.each(['not a url', 'ftp://x', 'http://user:pass@x', 'http://x?y=1'])('on the URL %s', async (url) => {
      await using rig = await open();
      expect(() => rig.engine({ url })).toThrow(
        expect.objectContaining({ kind: 'Config', reason: 'EngineConfigInvalid' }),
      );
    });
  });
}

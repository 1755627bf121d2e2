import { describe, expect, it } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { E2BApi } from './api.e2b.ts';
import { call, type E2BTarget, freshName, type Raw } from './suite.ts';

const OTHER = 'e2b_bbbbbbbbbbbbbbbb';
const UNKNOWN_BUILD = '00000000-0000-4000-8000-000000000000';

/** The 19 cases that E2B's API and its stub must both pass; the number leads each name. */
export function e2bContract(target: E2BTarget): void {
  const onStub = it.skipIf(target.real);
  const withApi = (body: (api: E2BApi) => Promise<void>) => async () => {
    await using opened = await target.open();
    await using api = new E2BApi(opened, target.image);
    await body(api);
  };

  describe('E2B API', () => {
    it(
      '1. answers 401 with code and message without a usable key, and /health needs none',
      withApi(async (api) => {
        const keys: Record<string, string>[] = [
          {},
          { 'x-api-key': 'sk_1234567890abcdef' },
          { 'x-api-key': 'e2b_0000000000000000' },
        ];
        for (const headers of keys) {
          const answer = await call(api.url, 'GET', '/v2/templates', { headers });
          expect(answer.status).toBe(401);
          expect(answer.json).toMatchObject({ code: 401, message: expect.any(String) });
        }
        expect((await call(api.url, 'GET', '/health')).status).toBeLessThan(300);
      }),
    );

    onStub(
      '2. answers /health with text or 204, and 503 when unhealthy',
      withApi(async (api) => {
        expect(await api.get('/health')).toMatchObject({ status: 200, text: 'Health check successful' });
        api.stub.healthStatus = 204;
        expect(await api.get('/health')).toMatchObject({ status: 204, text: '' });
        api.stub.healthy = false;
        expect((await api.get('/health')).status).toBe(503);
      }),
    );

    it(
      '3. answers a create with 202, a 20-character id, a uuid and the default tag',
      withApi(async (api) => {
        const name = freshName();
        const answer = await api.create({ name, cpuCount: 1, memoryMB: 1024 });
        expect(answer.status).toBe(202);
        expect(answer.json).toMatchObject({
          templateID: expect.stringMatching(/^[a-z0-9]{20}$/),
          buildID: expect.stringMatching(/^[0-9a-f-]{36}$/),
          public: false,
          names: [expect.stringContaining(name)],
          tags: ['default'],
          aliases: [name],
        });
      }),
    );

    it(
      '4. trims and lowers names, refuses bad ones, and reads name:tag',
      withApi(async (api) => {
        const name = freshName();
        expect((await api.create({ name: ` ${name.toUpperCase()} ` })).json.aliases).toEqual([name]);
        for (const bad of ['a b', 'nobody/b', 'x'.repeat(129)])
          expect((await api.create({ name: bad })).status).toBe(400);
        expect((await api.create({ name: `${freshName()}:v1` })).json.tags).toEqual(['v1']);
      }),
    );

    it(
      '5. gives the same name the same id and a new build, which supersedes a waiting one',
      withApi(async (api) => {
        const name = freshName();
        const first = (await api.create({ name })).json;
        const second = (await api.create({ name })).json;
        expect(second.templateID).toBe(first.templateID);
        expect(second.buildID).not.toBe(first.buildID);
        const status = await api.status(first);
        expect(status.json).toMatchObject({
          status: 'error',
          reason: { message: expect.stringContaining('superseded') },
        });
      }),
    );

    it(
      '6. refuses odd CPUs, odd memory and malformed JSON',
      withApi(async (api) => {
        for (const size of [{ cpuCount: 3 }, { cpuCount: 0 }, { cpuCount: 33 }, { memoryMB: 127 }, { memoryMB: 513 }]) {
          expect({ size, status: (await api.create({ name: freshName(), ...size })).status }).toEqual({
            size,
            status: 400,
          });
        }
        const illTyped = await api.create({ name: 7 });
        expect(illTyped).toMatchObject({ status: 400, json: { message: expect.stringContaining('validation error') } });
        expect((await api.send('POST', '/v3/templates', { raw: '{' })).status).toBe(400);
      }),
    );

    onStub(
      '7. refuses a name of another team, one that equals an id, and a deleted template',
      withApi(async (api) => {
        const name = freshName();
        await call(api.url, 'POST', '/v3/templates', { headers: { 'x-api-key': OTHER }, body: { name } });
        expect((await api.create({ name })).status).toBe(403);
        const { templateID } = (await api.create({ name: freshName() })).json;
        expect((await api.create({ name: templateID })).status).toBe(409);
        await api.remove(templateID);
        const gone = await api.create({ name: templateID });
        expect(gone).toMatchObject({
          status: 404,
          json: { message: 'Template has been deleted and cannot be rebuilt' },
        });
      }),
    );

    onStub(
      '8. answers 429 above the concurrent builds, and with Retry-After above the rate',
      withApi(async (api) => {
        api.stub.maxBuilds = 1;
        await api.create({ name: freshName() });
        const full = await api.create({ name: freshName() });
        expect(full).toMatchObject({
          status: 429,
          json: { message: expect.stringContaining('concurrent template builds (1)') },
        });
        const headers = {
          'retry-after': '7',
          'ratelimit-limit': '20000',
          'ratelimit-remaining': '0',
          'ratelimit-reset': '7',
        };
        api.stub.fail({ path: /v2/, answer: { status: 429, json: { code: 429, message: 'slow down' }, headers } });
        expect((await api.get('/v2/templates')).headers).toMatchObject(headers);
      }),
    );

    it(
      '9. starts a build once, with an empty answer',
      withApi(async (api) => {
        const created = (await api.create({ name: freshName() })).json;
        expect(await api.start(created)).toMatchObject({ status: 202, text: '' });
        const again = await api.start(created);
        expect(again).toMatchObject({
          status: 400,
          json: { message: expect.stringContaining('not in waiting state') },
        });
        expect((await api.start({ ...created, buildID: 'no-uuid' })).status).toBe(400);
        expect((await api.start({ ...created, buildID: UNKNOWN_BUILD })).status).toBe(404);
      }),
    );

    onStub(
      '9b. answers 503 when no builder runs',
      withApi(async (api) => {
        api.stub.builders = 0;
        expect((await api.start((await api.create({ name: freshName() })).json)).status).toBe(503);
      }),
    );

    it(
      '10. wants exactly one source, whole credentials, and never echoes them',
      withApi(async (api) => {
        const created = (await api.create({ name: freshName() })).json;
        for (const body of [{}, { fromImage: target.image, fromTemplate: 'base' }]) {
          expect((await api.start(created, body)).status).toBe(500);
          expect((await api.status(created)).json.status).toBe('waiting');
        }
        const incomplete = { fromImage: target.image, fromImageRegistry: { type: 'registry', username: 'u' } };
        expect((await api.start(created, incomplete)).status).toBe(400);
      }),
    );

    onStub(
      '10b. takes each kind of registry credential',
      withApi(async (api) => {
        const secret = 'pull-secret-7f3a';
        for (const fromImageRegistry of [
          { type: 'registry', username: 'u', password: secret },
          { type: 'aws', awsAccessKeyId: 'a', awsSecretAccessKey: secret, awsRegion: 'eu' },
          { type: 'gcp', serviceAccountJson: secret },
        ]) {
          const created = (await api.create({ name: freshName() })).json;
          const answers = [
            await api.start(created, { fromImage: target.image, fromImageRegistry }),
            await api.status(created),
          ];
          expect(answers.map((answer) => answer.status)).toEqual([202, 200]);
          expect(JSON.stringify(answers)).not.toContain(secret);
        }
      }),
    );

    it(
      '11. goes waiting, building, ready',
      { timeout: 900_000 },
      withApi(async (api) => {
        const created = (await api.create({ name: freshName() })).json;
        expect((await api.status(created)).json).toMatchObject({ status: 'waiting', logEntries: [] });
        await api.start(created);
        const wait = {
          timeoutMs: target.real ? 800_000 : 5_000,
          what: 'the build',
          intervalMs: target.real ? 5_000 : 1,
        };
        const states: string[] = [];
        await eventually(
          async () => states.push((await api.status(created)).json.status) && states.at(-1) === 'ready',
          wait,
        );
        expect(states[0]).toBe('building');
      }),
    );

    onStub(
      '11b. grows the log from an offset, and gives reason and log of an error, or none',
      withApi(async (api) => {
        api.stub.outcomes.push(
          { status: 'error', message: 'boom', step: '3' },
          { status: 'error', message: 'mute', silent: true },
        );
        const created = (await api.create({ name: freshName() })).json;
        await api.start(created);
        expect((await api.status(created)).json.logEntries).toHaveLength(1);
        expect((await api.status(created, '?logsOffset=1')).json.logEntries).toHaveLength(1);
        const failed = (await api.status(created)).json;
        expect(failed).toMatchObject({
          status: 'error',
          reason: { message: 'boom', step: '3', logEntries: [{ message: 'boom' }] },
        });
        expect((await api.status(created, '?limit=101')).status).toBe(400);
        const mute = (await api.create({ name: freshName() })).json;
        await api.start(mute);
        const last = await eventually(async () => {
          const { json } = await api.status(mute);
          return json.status === 'error' && json;
        });
        expect(last).toMatchObject({ logEntries: [], reason: { message: 'mute', logEntries: [] } });
      }),
    );

    it(
      '12. answers 400 for an unknown build',
      withApi(async (api) => {
        const { templateID } = (await api.create({ name: freshName() })).json;
        const answer = await api.status({ templateID, buildID: UNKNOWN_BUILD });
        expect(answer).toMatchObject({ status: 400, json: { message: expect.stringContaining('not found') } });
      }),
    );

    onStub(
      '12b. answers 403 for a build of another team',
      withApi(async (api) => {
        const created = (await api.create({ name: freshName() })).json;
        const path = `/templates/${created.templateID}/builds/${created.buildID}/status`;
        expect((await call(api.url, 'GET', path, { headers: { 'x-api-key': OTHER } })).status).toBe(403);
      }),
    );

    onStub(
      '13. ends a build that nobody starts',
      withApi(async (api) => {
        const created = (await api.create({ name: freshName() })).json;
        api.stub.elapse(41 * 60_000);
        const { json } = await api.status(created);
        expect(json).toMatchObject({ status: 'error', reason: { message: 'build is in waiting state for too long' } });
      }),
    );

    it(
      '14. finds a template by id only, an alias by its own route',
      withApi(async (api) => {
        const name = freshName();
        const { templateID } = (await api.create({ name })).json;
        expect((await api.get(`/templates/${templateID}`)).json).toMatchObject({
          templateID,
          builds: [{ status: 'waiting' }],
        });
        expect((await api.get(`/templates/${name}`)).status).toBe(404);
        expect(await api.get(`/templates/aliases/${name}`)).toMatchObject({ status: 200, json: { templateID } });
        expect((await api.get(`/templates/aliases/${freshName()}`)).status).toBe(404);
        expect((await api.get('/templates/aliases/a%20b')).status).toBe(400);
      }),
    );

    onStub(
      '14b. hides an alias of another team behind 403',
      withApi(async (api) => {
        const name = freshName();
        await api.create({ name });
        const answer = await call(api.url, 'GET', `/templates/aliases/${name}`, { headers: { 'x-api-key': OTHER } });
        expect(answer.status).toBe(403);
      }),
    );

    it(
      '15. pages its list',
      withApi(async (api) => {
        const ids = [
          (await api.create({ name: freshName() })).json.templateID,
          (await api.create({ name: freshName() })).json.templateID,
        ];
        const seen: string[] = [];
        for (let path: string | undefined = '/v2/templates?limit=1'; path; ) {
          const page: Raw = await api.get(path);
          seen.push(...page.json.map((row: { templateID: string }) => row.templateID));
          const next = page.headers['x-next-token'];
          path = next && `/v2/templates?limit=1&nextToken=${encodeURIComponent(String(next))}`;
        }
        expect(seen).toEqual(expect.arrayContaining(ids));
        expect((await api.get('/v2/templates?limit=101')).status).toBe(400);
      }),
    );

    it(
      '16. deletes once and gives the name a new id afterwards',
      withApi(async (api) => {
        const name = freshName();
        const { templateID } = (await api.create({ name })).json;
        expect((await api.remove(templateID)).status).toBe(204);
        expect((await api.remove(templateID)).status).toBe(404);
        expect((await api.create({ name })).json.templateID).not.toBe(templateID);
      }),
    );

    onStub(
      '16b. refuses to delete under running and paused sandboxes',
      withApi(async (api) => {
        const { templateID } = (await api.create({ name: freshName() })).json;
        for (const state of ['running', 'paused'] as const) {
          api.stub.use(templateID, state);
          const answer = await api.remove(templateID);
          expect(answer).toMatchObject({
            status: 400,
            json: { message: expect.stringContaining(`there are ${state} sandboxes`) },
          });
        }
      }),
    );

    it(
      '17. does not resolve a bare name whose tags lack default',
      withApi(async (api) => {
        const name = freshName();
        await api.create({ name, tags: ['v1'] });
        expect((await api.get(`/templates/aliases/${name}`)).status).toBe(404);
      }),
    );

    it(
      '18. no longer serves the first build routes',
      withApi(async (api) => {
        expect(
          (await api.send('POST', '/templates', { body: { dockerfile: 'FROM x' } })).status,
        ).toBeGreaterThanOrEqual(400);
      }),
    );

    onStub(
      '19. caches the base layer by reference, so only a digest sees new content',
      withApi(async (api) => {
        const build = async (fromImage: string) => {
          const created = (await api.create({ name: freshName() })).json;
          await api.start(created, { fromImage });
          return api.stub.contentOf(created.buildID);
        };
        api.stub.registry.set('r/x:latest', 'old');
        expect(await build('r/x:latest')).toBe('old');
        api.stub.registry.set('r/x:latest', 'new').set('r/x@sha256:1', 'new');
        expect(await build('r/x:latest')).toBe('old');
        expect(await build('r/x@sha256:1')).toBe('new');
      }),
    );
  });
}

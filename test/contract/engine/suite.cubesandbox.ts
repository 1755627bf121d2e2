import { describe, expect, it } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { CubeApi } from './api.cubesandbox.ts';
import { type CubeTarget, call, freshName } from './suite.ts';

/** The 22 cases that CubeSandbox's API and its stub must both pass; the number leads each name. */
export function cubeContract(target: CubeTarget): void {
  const onStub = it.skipIf(target.real);
  const withApi = (body: (api: CubeApi) => Promise<void>) => async () => {
    await using opened = await target.open();
    await using api = new CubeApi(opened, target.image);
    await body(api);
  };

  describe('CubeAPI', () => {
    onStub(
      '1. lets anyone in without auth; with it wants the key, and Bearer beats X-API-Key',
      withApi(async (api) => {
        expect((await call(api.url, 'GET', '/templates')).status).toBe(200);
        api.stub.key = 'right';
        const as = async (headers: Record<string, string>) =>
          (await call(api.url, 'GET', '/templates', { headers })).status;
        expect(await as({})).toBe(401);
        expect(await as({ 'x-api-key': 'right' })).toBe(200);
        expect(await as({ authorization: 'Bearer right', 'x-api-key': 'wrong' })).toBe(200);
        expect(await as({ authorization: 'Bearer wrong', 'x-api-key': 'right' })).toBe(401);
        expect((await call(api.url, 'GET', '/health')).status).toBe(200);
      }),
    );

    onStub(
      '2. is healthy even when CubeMaster is down, and then lists nothing',
      withApi(async (api) => {
        api.stub.masterDown = true;
        expect((await api.get('/health')).json).toMatchObject({ status: 'ok', sandboxes: 0 });
        expect((await api.get('/templates')).status).toBe(500);
      }),
    );

    it(
      '3. answers a create with 202 and its own tpl- id',
      withApi(async (api) => {
        const answer = await api.create({ templateID: 'tpl-mine' });
        expect(answer).toMatchObject({
          status: 202,
          json: { jobID: expect.any(String), status: 'PENDING', phase: 'PULLING' },
        });
        expect(answer.json.templateID).toMatch(/^tpl-(?!mine$)/);
      }),
    );

    it(
      '4. refuses incomplete and malformed requests',
      withApi(async (api) => {
        const post = (body: unknown) => api.send('POST', '/templates', { body });
        const base = { image: target.image, writableLayerSize: '2G' };
        expect((await post({ writableLayerSize: '2G' })).status).toBe(422);
        expect(await post({ ...base, image: ' ' })).toMatchObject({
          status: 400,
          text: expect.stringContaining('image is required'),
        });
        for (const body of [
          { image: target.image },
          { ...base, dns: ['not an address'] },
          { ...base, exposedPorts: [1, 2, 3, 4] },
          { ...base, image: 'a image' },
        ]) {
          const { status, text } = await post(body);
          expect({ body, status, text }).toMatchObject({ status: 400, text: expect.stringContaining('130400') });
        }
      }),
    );

    onStub(
      '5. makes two templates of one body; the alias shows at READY and moves to the newest',
      withApi(async (api) => {
        const name = freshName();
        const first = (await api.create({ name })).json;
        const second = (await api.create({ name })).json;
        expect(first.templateID).not.toBe(second.templateID);
        expect((await api.get(`/templates/aliases/${name}`)).status).toBe(404);
        await api.finish(first);
        await api.finish(second);
        expect((await api.get(`/templates/aliases/${name}`)).json.templateID).toBe(second.templateID);
        expect((await api.get(`/templates/${first.templateID}`)).json.aliases).toEqual([]);
      }),
    );

    onStub(
      '6. drops an invalid alias without a word',
      withApi(async (api) => {
        for (const name of ['Upper', 'a_b', 'x'.repeat(65), 'tpl-x']) {
          const created = (await api.create({ name })).json;
          await api.finish(created);
          expect((await api.get(`/templates/${created.templateID}`)).json).toMatchObject({
            status: 'READY',
            aliases: [],
          });
        }
      }),
    );

    onStub(
      '7. fails in PULLING when the CA is missing, which is the default to add',
      withApi(async (api) => {
        api.stub.caMissing = true;
        const created = (await api.create()).json;
        expect((await api.status(created)).json).toMatchObject({
          status: 'error',
          message: expect.stringContaining('CA'),
        });
        const without = (await api.create({ with_cube_ca: false })).json;
        await api.finish(without);
      }),
    );

    onStub(
      '8. shows the phases in order, READY 100 while only BUILT, and 100 on failure',
      withApi(async (api) => {
        api.stub.built = true;
        const created = (await api.create()).json;
        const shown: string[] = [];
        await eventually(
          async () => {
            const { status, message, progress } = (await api.status(created)).json;
            shown.push(`${status} ${message} ${progress}`);
            return status === 'ready';
          },
          { intervalMs: 1 },
        );
        expect(shown.slice(0, 2)).toEqual(['building UNPACKING 12', 'building BUILDING_EXT4 25']);
        expect(shown.slice(-2)).toEqual(['building READY 100', 'ready READY 100']);
        api.stub.failures.push('mkfs failed');
        const failing = (await api.create()).json;
        await api.status(failing);
        expect((await api.status(failing)).json).toMatchObject({
          status: 'error',
          message: 'mkfs failed',
          progress: 100,
        });
      }),
    );

    it(
      '9. answers 500 for an unknown job',
      withApi(async (api) => {
        const created = (await api.create()).json;
        expect((await api.status({ ...created, jobID: 'nojob' })).status).toBe(500);
      }),
    );

    it(
      '10. has one log line',
      withApi(async (api) => {
        const created = (await api.create()).json;
        const { json } = await api.get(`/templates/${created.templateID}/builds/${created.jobID}/logs`);
        expect(json.lines).toHaveLength(1);
      }),
    );

    it(
      '11. shows a detail by id and alias, without the image that the list has',
      { timeout: 900_000 },
      withApi(async (api) => {
        const name = freshName();
        const created = (await api.create({ name })).json;
        const during = (await api.get(`/templates/${created.templateID}`)).json;
        expect(during).toMatchObject({
          status: expect.stringMatching(/^(PENDING|RUNNING|CREATING|BUILT)$/),
          aliases: [],
        });
        await api.finish(created);
        const detail = (await api.get(`/templates/${name}`)).json;
        expect(detail).toMatchObject({
          templateID: created.templateID,
          status: expect.stringMatching(/READY$/),
          replicas: [{}],
        });
        expect(detail.imageInfo).toBeUndefined();
        expect((await api.row(created)).imageInfo).toBe(target.image);
      }),
    );

    onStub(
      '11b. is PARTIALLY_READY when nodes are missing',
      withApi(async (api) => {
        api.stub.partial = true;
        const created = (await api.create()).json;
        await api.finish(created);
        expect((await api.get(`/templates/${created.templateID}`)).json.status).toBe('PARTIALLY_READY');
      }),
    );

    onStub(
      '12. deletes once, and refuses under a build or a sandbox',
      withApi(async (api) => {
        const created = (await api.create()).json;
        expect((await api.remove(created)).status).toBe(409);
        await api.finish(created);
        api.stub.use(created.templateID);
        expect((await api.remove(created)).status).toBe(409);
        api.stub.deleteMode = 'legacy';
        expect(await api.remove(created)).toMatchObject({ status: 400, text: expect.stringContaining('130400') });
        api.stub.deleteMode = 'locator-missing';
        expect((await api.remove(created)).status).toBe(404);
        expect((await api.get(`/templates/${created.templateID}`)).status).toBe(200);
        api.stub.deleteMode = 'normal';
        api.stub.use(created.templateID, false);
        expect((await api.remove(created)).status).toBe(204);
        expect((await api.remove(created)).status).toBe(404);
        expect((await api.status(created)).status).toBe(500);
      }),
    );

    onStub(
      '13. builds again under the same id, and answers every refusal with 400',
      withApi(async (api) => {
        const redo = (id: string) => api.send('POST', `/templates/${id}`, { body: { failed_only: true } });
        const created = (await api.create({ registryUsername: 'u', registryPassword: 'p' })).json;
        expect((await redo(created.templateID)).status).toBe(400);
        expect((await redo('tpl-unknown')).status).toBe(400);
        await api.finish(created);
        const again = await redo(created.templateID);
        expect(again).toMatchObject({ status: 202, json: { templateID: created.templateID } });
        expect(again.json.jobID).not.toBe(created.jobID);
        await api.finish(again.json);
        api.stub.rootfsLost = true;
        const lost = (await redo(created.templateID)).json;
        expect((await api.status(lost)).json.status).toBe('error');
      }),
    );

    onStub(
      '14. sets, moves and clears an alias',
      withApi(async (api) => {
        const put = async (id: string, alias: string | null) =>
          (await api.send('PUT', `/templates/${id}/alias`, { body: { alias } })).status;
        const created = (await api.create()).json;
        expect(await put(created.templateID, 'early')).toBe(409);
        await api.finish(created);
        const alias = freshName();
        expect(await put(created.templateID, alias)).toBe(200);
        expect(await put(created.templateID, 'Not-One')).toBe(400);
        expect(await put('tpl-unknown', alias)).toBe(404);
        expect(await put(created.templateID, null)).toBe(200);
        expect((await api.get(`/templates/aliases/${alias}`)).status).toBe(404);
      }),
    );

    it(
      '15. has neither PATCH nor the routes of E2B',
      withApi(async (api) => {
        const created = (await api.create()).json;
        expect((await api.send('PATCH', `/templates/${created.templateID}`, { body: {} })).status).toBe(501);
        expect((await api.send('POST', '/v3/templates', { body: { name: 'x' } })).status).toBe(404);
      }),
    );

    onStub(
      '15b. answers 408 when an ordinary route is slow',
      withApi(async (api) => {
        api.stub.fail({ path: /^\/templates$/, answer: { status: 408, text: '' } });
        expect((await api.get('/templates')).status).toBe(408);
      }),
    );

    onStub(
      '16. replaces the ENV of the image by what is sent',
      withApi(async (api) => {
        const env = async (body: object) =>
          (await api.get(`/templates/${(await api.create(body)).json.templateID}`)).json.createRequest.env;
        expect(await env({ env: ['A=1'] })).toEqual(['A=1']);
        expect(await env({})).toEqual(api.stub.imageEnv);
      }),
    );

    onStub(
      '17. records millicores and MiB',
      withApi(async (api) => {
        const { templateID } = (await api.create({ cpu: 1000, memory: 1024 })).json;
        expect((await api.get(`/templates/${templateID}`)).json.createRequest).toMatchObject({
          cpu: '1000m',
          mem: '1024Mi',
        });
      }),
    );

    onStub(
      '18. answers 202 with empty ids when CubeMaster gave no job',
      withApi(async (api) => {
        api.stub.jobless = 'none';
        expect(await api.create()).toMatchObject({
          status: 202,
          json: { jobID: '', templateID: '', status: 'accepted' },
        });
      }),
    );

    onStub(
      '19. can stay RUNNING for ever and refuse its deletion',
      withApi(async (api) => {
        api.stub.stuck = true;
        const created = (await api.create()).json;
        for (let i = 0; i < 20; i++) api.stub.tick();
        expect((await api.status(created)).json.status).toBe('building');
        expect((await api.remove(created)).status).toBe(409);
      }),
    );

    onStub(
      '20. lists snapshots among the templates',
      withApi(async (api) => {
        api.stub.snapshots.push({ templateID: 'snap-1', imageInfo: target.image });
        expect((await api.get('/templates')).json).toMatchObject([{ templateID: 'snap-1' }]);
      }),
    );

    onStub(
      '21. answers 400 without a validation text when the database is down',
      withApi(async (api) => {
        api.stub.databaseDown = true;
        expect(await api.create()).toMatchObject({ status: 400, text: expect.stringContaining('connection refused') });
      }),
    );

    it(
      '22. lists a building template with the image that was sent and no alias',
      withApi(async (api) => {
        const created = (await api.create({ name: freshName() })).json;
        expect(await api.row(created)).toMatchObject({ imageInfo: target.image, aliases: [] });
      }),
    );
  });
}

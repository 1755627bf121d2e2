import { eventually } from '../../support/eventually.ts';
import type { CubeStub } from './stubs/cubesandbox.ts';
import { call, freshName, type Opened, type Raw, stubOf } from './suite.ts';

/** What a create answers. */
export interface Created {
  templateID: string;
  jobID: string;
}

/** The raw API with the key, which removes at the end what a case made. */
export class CubeApi implements AsyncDisposable {
  readonly url: string;
  readonly #opened: Opened<CubeStub>;
  readonly #image: string;
  readonly #made: Created[] = [];

  constructor(opened: Opened<CubeStub>, image: string) {
    this.#opened = opened;
    this.#image = image;
    this.url = opened.url;
  }

  get stub(): CubeStub {
    return stubOf(this.#opened);
  }

  send(
    method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    options: { body?: unknown } = {},
  ): Promise<Raw> {
    const headers = this.#opened.key ? { authorization: `Bearer ${this.#opened.key}` } : undefined;
    return call(this.url, method, path, { ...options, ...(headers && { headers }) });
  }

  get(path: string): Promise<Raw> {
    return this.send('GET', path);
  }

  async create(body: object = {}): Promise<Raw> {
    const base = { image: this.#image, name: freshName(), writableLayerSize: '2G', exposedPorts: [49_983] };
    const answer = await this.send('POST', '/templates', { body: { ...base, ...body } });
    if (answer.status === 202) this.#made.push(answer.json);
    return answer;
  }

  status({ templateID, jobID }: Created): Promise<Raw> {
    return this.get(`/templates/${templateID}/builds/${jobID}/status`);
  }

  remove({ templateID }: Created): Promise<Raw> {
    return this.send('DELETE', `/templates/${templateID}`);
  }

  async row({ templateID }: Created): Promise<Raw['json']> {
    return (await this.get('/templates')).json.find((row: Created) => row.templateID === templateID);
  }

  async finish(created: Created): Promise<void> {
    const real = !this.#opened.stub;
    const options = { timeoutMs: real ? 800_000 : 5_000, intervalMs: real ? 5_000 : 1, what: 'the build' };
    await eventually(async () => (await this.status(created)).json.status === 'ready', options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#opened.stub) return;
    for (const created of this.#made) {
      const gone = async () => [204, 404].includes((await this.remove(created)).status);
      await eventually(gone, { timeoutMs: 600_000, intervalMs: 5_000, what: `the removal of ${created.templateID}` });
    }
  }
}

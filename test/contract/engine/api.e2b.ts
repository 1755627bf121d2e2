import type { E2BStub } from './stubs/e2b.ts';
import { call, type Opened, type Raw, stubOf } from './suite.ts';

/** What a create answers. */
export interface Created {
  templateID: string;
  buildID: string;
}

/** The raw API with the key, which removes at the end what a case made. */
export class E2BApi implements AsyncDisposable {
  readonly url: string;
  readonly #opened: Opened<E2BStub>;
  readonly #image: string;
  readonly #made = new Set<string>();

  constructor(opened: Opened<E2BStub>, image: string) {
    this.#opened = opened;
    this.#image = image;
    this.url = opened.url;
  }

  get stub(): E2BStub {
    return stubOf(this.#opened);
  }

  send(method: 'GET' | 'POST' | 'DELETE', path: string, options: { body?: unknown; raw?: string } = {}): Promise<Raw> {
    return call(this.url, method, path, { ...options, headers: { 'x-api-key': this.#opened.key ?? '' } });
  }

  get(path: string): Promise<Raw> {
    return this.send('GET', path);
  }

  async create(body: Record<string, unknown>): Promise<Raw> {
    const answer = await this.send('POST', '/v3/templates', { body });
    if (answer.status === 202) this.#made.add(answer.json.templateID);
    return answer;
  }

  start({ templateID, buildID }: Created, body: unknown = { fromImage: this.#image, steps: [] }): Promise<Raw> {
    return this.send('POST', `/v2/templates/${templateID}/builds/${buildID}`, { body });
  }

  status({ templateID, buildID }: Created, query = ''): Promise<Raw> {
    return this.get(`/templates/${templateID}/builds/${buildID}/status${query}`);
  }

  remove(templateID: string): Promise<Raw> {
    return this.send('DELETE', `/templates/${templateID}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#opened.stub) for (const id of this.#made) await this.remove(id);
  }
}

import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, inject } from 'vitest';
import { API_VERSION } from '../../../src/api/labels.ts';
import type { TestRepository } from '../../support/git.ts';
import type { Ref } from '../../support/k8s.ts';
import { applySecret, marketplace, newRepository } from '../../support/market.ts';
import { type Operator, startOperator } from '../../support/operator.ts';

/** `http://127.0.0.1:<port>` of the Git server, where the paths are that answer wrongly. */
export const ORIGIN = new URL(inject('cluster').git.httpUrl).origin;
/** A host key that is well-formed and not the server's. */
export const otherHostKey = (): string => {
  const [host] = inject('cluster').git.sshKnownHosts.split(' ');
  // The type, then 32 bytes.
  const key = Buffer.concat([Buffer.from('0000000b7373682d6564323535313900000020', 'hex'), randomBytes(32)]);
  return `${host} ssh-ed25519 ${key.toString('base64')}\n`;
};

let number = 0;
/** A name that no other test of the process uses. */
export const unique = (prefix: string): string => `${prefix}-${++number}`;

/** One operator and one repository with two skills, behind every address of the Git server; use it within tests only. */
export class GitWorld {
  #operator: Operator | undefined;
  #repository: TestRepository | undefined;

  constructor() {
    beforeAll(async () => {
      this.#operator = await startOperator(inject('cluster'));
      this.#repository = await newRepository(this.#operator, 'faults');
      await this.#repository.commit(marketplace({ docs: { pdf: {}, odt: {} } }));
    });
    beforeEach(() => this.operator.check());
    afterAll(() => this.#operator?.[Symbol.asyncDispose]());
  }

  get operator(): Operator {
    if (!this.#operator) throw new Error('the operator is not up yet');
    return this.#operator;
  }

  get repository(): TestRepository {
    if (!this.#repository) throw new Error('the repository is not there yet');
    return this.#repository;
  }

  /** Address of the repository below one of the bases of the cluster. */
  url(base: 'httpUrl' | 'privateUrl' | 'httpsUrl' | 'sshUrl', name = this.repository.name): string {
    return `${this.operator.info.git[base]}/${name}.git`;
  }

  /** Stores a Secret and returns its name. */
  async secret(values: Record<string, string>, annotations?: Record<string, string>): Promise<string> {
    const name = unique('secret');
    await applySecret(this.operator, name, values, annotations);
    return name;
  }

  /** The part of a spec that names an address and a new Secret. */
  async withSecret(
    url: string,
    values: Record<string, string>,
    annotations?: Record<string, string>,
  ): Promise<Record<string, unknown>> {
    return { git: { url }, secretRef: { name: await this.secret(values, annotations) } };
  }

  /** Applies a source of this spec. */
  async applied(spec: Record<string, unknown>): Promise<Ref> {
    const ref = this.operator.source(unique('team'));
    await this.operator.k8s.apply({
      apiVersion: API_VERSION,
      kind: 'MarketplaceSource',
      metadata: { name: ref.name, namespace: this.operator.namespace },
      spec: { type: 'git', interval: '10m', timeout: '20s', ...spec },
    });
    return ref;
  }
}

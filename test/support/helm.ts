import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import { exec, type Finished } from '../cluster/exec.ts';
import { ensureHelm } from '../cluster/helm-binary.ts';
import { type K8sObject, parseObjects } from './k8s.ts';

/** Folder of the chart. */
export const CHART = fileURLToPath(new URL('../../charts/skill-operator', import.meta.url));
/** Longest time that compiling Helm takes on a small, busy machine; for the hook that needs it first. */
export const HELM_COMPILE_MS = 30 * 60_000;

const RUN_MS = 120_000;

/** Values of a chart. */
export type Values = Record<string, unknown>;

/** The least that has to be set. */
export const MINIMAL: Values = {
  config: { store: { endpoint: 'https://minio.example.com', bucket: 'skills' } },
  store: { existingSecret: 'skill-store' },
};

interface RunOptions {
  values?: Values;
  kubeconfig?: string;
  /** Default: two minutes. */
  timeoutMs?: number;
}

/** Helm with files of its own, and no cluster but the one that is given. */
export class Helm implements AsyncDisposable {
  readonly #home = mkdtempSync(join(tmpdir(), 'skill-operator-helm-'));

  /** Compiles Helm once per machine; call it in a hook with `HELM_COMPILE_MS`. */
  async prepare(): Promise<void> {
    await this.#binary();
  }

  #binary(): Promise<string> {
    const say = (line: string) => process.stderr.write(`[helm] ${line}\n`);
    return ensureHelm({ say }, AbortSignal.timeout(HELM_COMPILE_MS));
  }

  /** Runs Helm to its end; values go in as the file `-`. */
  async run(args: readonly string[], options: RunOptions = {}): Promise<Finished> {
    const { values, kubeconfig, timeoutMs = RUN_MS } = options;
    const env = {
      ...{ HELM_CACHE_HOME: this.#home, HELM_CONFIG_HOME: this.#home, HELM_DATA_HOME: this.#home },
      KUBECONFIG: kubeconfig ?? join(this.#home, 'none'),
    };
    const input = values ? { input: stringify(values, { version: '1.1' }) } : {};
    const all = [...args, ...(values ? ['--values', '-'] : [])];
    return await exec(await this.#binary(), all, { signal: AbortSignal.timeout(timeoutMs), timeoutMs, env, ...input });
  }

  /** Like `run`, but what fails throws with Helm's own words. */
  async ok(args: readonly string[], options: RunOptions = {}): Promise<string> {
    const { code, stdout, stderr } = await this.run(args, options);
    if (code !== 0) throw new Error(`helm ${args.join(' ')} ended with ${code}: ${stderr}${stdout}`);
    return stdout;
  }

  /** All objects that the chart renders, hooks included. */
  async render(values: Values, options: { release?: string; namespace?: string } = {}): Promise<K8sObject[]> {
    const { release = 'skill-operator', namespace = 'skill-operator-system' } = options;
    return parseObjects(await this.ok(['template', release, CHART, '--namespace', namespace], { values }));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return rm(this.#home, { recursive: true, force: true });
  }
}

/** The one object of a kind, and of a name when it is given. */
export function one(objects: readonly K8sObject[], kind: string, name?: string): K8sObject {
  const found = objects.filter(
    (object) => object.kind === kind && (name === undefined || object.metadata.name === name),
  );
  if (found.length !== 1 || !found[0])
    throw new Error(
      `${found.length} objects are ${kind} ${name ?? ''}: ${objects.map((o) => `${o.kind}/${o.metadata.name}`).join(' ')}`,
    );
  return found[0];
}

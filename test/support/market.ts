import { randomBytes } from 'node:crypto';
import { ANNOTATIONS, API_VERSION } from '../../src/api/labels.ts';
import { createRepository, type TestFile, type TestRepository, type TestTree } from './git.ts';
import { condition, type K8s, type K8sObject, type Ref } from './k8s.ts';
import type { Operator } from './operator.ts';

/** The fields of a SKILL.md; `body` follows the frontmatter. */
export interface SkillMd {
  name: string;
  description?: string;
  runtime?: string;
  body?: string;
}

/** The text of a valid SKILL.md. */
export function skillMd({ name, description = `Does ${name}.`, runtime, body = `Steps of ${name}.` }: SkillMd): string {
  const fields = [`name: ${name}`, `description: ${description}`, ...(runtime ? [`runtime: ${runtime}`] : [])];
  return `---\n${fields.join('\n')}\n---\n\n${body}\n`;
}

/** Files of one skill, relative to its directory; a text alone is its SKILL.md; `{}` is a prompt-only skill of that name. */
type SkillFiles = string | Record<string, TestFile>;

/** Plugin → skill → files. A skill without SKILL.md of its own gets a valid one; `'SKILL.md': ''` leaves it out. */
export type Market = Record<string, Record<string, SkillFiles>>;

function filesOf(name: string, given: SkillFiles): [string, TestFile][] {
  const files = typeof given === 'string' ? { 'SKILL.md': given } : { 'SKILL.md': skillMd({ name }), ...given };
  return Object.entries(files).filter(([path, file]) => path !== 'SKILL.md' || file !== '');
}

/** The files of a marketplace repository; `root` is a directory with a slash at its end, such as `teams/docs/`. */
export function marketplace(market: Market, root = ''): TestTree {
  const files = Object.entries(market).flatMap(([plugin, skills]) =>
    Object.entries(skills).flatMap(([name, given]) =>
      filesOf(name, given).map(([path, file]) => [`${root}plugins/${plugin}/skills/${name}/${path}`, file] as const),
    ),
  );
  return Object.fromEntries(files);
}

/** An empty repository under a name of its own on the cluster's Git server. */
export const newRepository = (operator: Operator, prefix = 'market'): Promise<TestRepository> =>
  createRepository(operator.info.git.root, `${prefix}-${randomBytes(5).toString('hex')}`);

/** Its address that asks for no credentials. */
export const publicUrl = (operator: Operator, { name }: Pick<TestRepository, 'name'>): string =>
  `${operator.info.git.httpUrl}/${name}.git`;

/** The manifest of a MarketplaceSource of type git; null in `spec` leaves a field out. */
export function gitSource(
  operator: Operator,
  name: string,
  repository: Pick<TestRepository, 'name'>,
  spec: Record<string, unknown> = {},
): K8sObject {
  const merged = { type: 'git', git: { url: publicUrl(operator, repository) }, interval: '10m', ...spec };
  return {
    apiVersion: API_VERSION,
    kind: 'MarketplaceSource',
    metadata: { name, namespace: operator.namespace },
    spec: Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== null)),
  };
}

/** Applies a MarketplaceSource of type git and returns its reference. */
export async function applySource(
  operator: Operator,
  name: string,
  repository: Pick<TestRepository, 'name'>,
  spec: Record<string, unknown> = {},
): Promise<Ref> {
  await operator.k8s.apply(gitSource(operator, name, repository, spec));
  return operator.source(name);
}

/** Makes a Secret beside the objects of the test. */
export async function applySecret(
  { k8s, namespace }: Operator,
  name: string,
  stringData: Record<string, string>,
  annotations: Record<string, string> = {},
): Promise<void> {
  await k8s.apply({ apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace, annotations }, stringData });
}

/** True when the status describes the spec as it stands. */
export const isObserved = ({ metadata, status }: K8sObject): boolean =>
  status?.observedGeneration === metadata.generation;

/** True when the object is Ready for its spec as it stands. */
export const isReady = (object: K8sObject): boolean =>
  isObserved(object) && condition(object, 'Ready')?.status === 'True';

/** Waits until the object is Ready for its current spec. */
export const waitReady = (k8s: K8s, ref: Ref, timeoutMs = 30_000): Promise<K8sObject> =>
  k8s.waitFor(ref, isReady, { timeoutMs, what: `${ref.kind} ${ref.name} Ready` });

/** Waits until Ready is False with that reason. */
export const waitNotReady = (k8s: K8s, ref: Ref, reason: string, timeoutMs = 30_000): Promise<K8sObject> =>
  k8s.waitFor(
    ref,
    (object) => {
      const ready = condition(object, 'Ready');
      return ready?.status === 'False' && ready.reason === reason;
    },
    { timeoutMs, what: `${ref.kind} ${ref.name} not Ready with ${reason}` },
  );

let requests = 0;

/** Asks for a pass now and waits until the status answers it. */
export async function requestPass(k8s: K8s, ref: Ref, timeoutMs = 30_000): Promise<K8sObject> {
  const value = `test-${++requests}`;
  await k8s.annotate(ref, { [ANNOTATIONS.requestedAt]: value });
  return await k8s.waitFor(ref, (object) => object.status?.lastHandledReconcileAt === value, {
    timeoutMs,
    what: `the answer of ${ref.kind} ${ref.name} to a request`,
  });
}

import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { ANNOTATIONS, API_VERSION } from '../../../src/api/labels.ts';
import { bookmark, type Write, writesSince } from '../../support/audit.ts';
import { ACCOUNT, contentOf, nodeProcessOf, reader, settledLeader } from '../../support/chart/observe.ts';
import { BUILDS, type ChartStage, HOME, openChartStage, RELEASE, ROLLOUT_MS } from '../../support/chart/stage.ts';
import { eventually } from '../../support/eventually.ts';
import { createRepository, type TestRepository } from '../../support/git.ts';
import type { Values } from '../../support/helm.ts';
import type { K8sObject } from '../../support/k8s.ts';
import { isReady, marketplace, skillMd, waitReady } from '../../support/market.ts';
import { logsOf, runPod } from '../../support/pods.ts';
import { listObjects } from '../../support/s3.ts';

const { node } = inject('cluster');
const say = (line: string) => process.stderr.write(`[chart] ${line}\n`);
const MAKE_MS = 40 * 60_000;
const BUILT_MS = 240_000;
const SKILLS = 3;
/** A user id as OpenShift gives it. */
const SOME_USER = 1_000_660_000;
const TEAM = 'team';
const OWN = 'market.p.own-image';
const CRD = { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' };

// One life of a release; each step stands on the one before.
describe.skipIf(!node)('the chart on a node', { concurrent: false, timeout: 600_000 }, () => {
  let stage: ChartStage;
  let repository: TestRepository;
  let values: Values;

  beforeAll(async () => {
    stage = await openChartStage(TEAM, say, new AbortController().signal);
    await stage.prepare();
    values = { ...stage.values(), podSecurityContext: { runAsUser: SOME_USER, runAsGroup: 0, fsGroup: SOME_USER } };
    repository = await createRepository(stage.info.git.root, 'market');
  }, MAKE_MS);
  afterAll(async () => await stage?.[Symbol.asyncDispose]());

  const own = (greeting: string) => ({
    'SKILL.md': skillMd({ name: 'own-image', runtime: 'e2b' }),
    '.e2b.dockerfile': `FROM ${stage.node.images.busybox}\nCOPY greeting.txt /greeting.txt\nRUN cp /greeting.txt /copy.txt\n`,
    'greeting.txt': `${greeting}\n`,
  });
  const market = (steps: string, greeting: string) =>
    marketplace({
      p: {
        plain: skillMd({ name: 'plain', body: steps }),
        'with-runtime': skillMd({ name: 'with-runtime', runtime: 'e2b::python' }),
        'own-image': own(greeting),
      },
    });
  const push = async (steps: string, greeting: string) => {
    await repository.commit(market(steps, greeting), { keep: false });
    await stage.k8s.annotate(stage.source('market'), { [ANNOTATIONS.requestedAt]: `${steps} ${greeting}` });
  };
  const source = () => ({
    apiVersion: API_VERSION,
    kind: 'MarketplaceSource',
    metadata: { name: 'market', namespace: TEAM },
    spec: { type: 'git', git: { url: `${stage.info.git.httpUrl}/market.git` }, interval: '10m' },
  });
  const skills = () => stage.k8s.list({ apiVersion: API_VERSION, kind: 'Skill', namespace: TEAM });
  /** What a needless write would change. */
  const versions = async () => {
    const objects = [...(await skills()), await stage.k8s.get(stage.source('market'))];
    return objects.map((object) => `${object?.metadata.name} ${object?.metadata.resourceVersion}`);
  };
  const isAboutSkills = ({ user, resource }: Write) =>
    user === ACCOUNT && /^(skills|marketplacesources)\b/.test(resource);
  const jobs = () => stage.k8s.list({ apiVersion: 'batch/v1', kind: 'Job', namespace: BUILDS });

  test('is installed, its pods run as they are rendered, and helm test says so', async () => {
    const notes = await stage.install(values);
    expect(notes).toContain(`kubectl -n ${HOME} rollout status deploy/${RELEASE}`);
    expect(notes).toContain(`Builds push with Secret registry-push of namespace ${BUILDS}`);
    await stage.allowPush();
    await stage.rolledOut();
    await settledLeader(stage, 0);
    const pods = await stage.pods();
    expect(pods).toHaveLength(2);
    for (const { metadata, spec, status } of pods) {
      expect(spec.securityContext).toMatchObject({ runAsUser: SOME_USER, runAsNonRoot: true });
      expect(spec.containers[0].securityContext).toMatchObject({ readOnlyRootFilesystem: true });
      expect(status.containerStatuses[0].restartCount).toBe(0);
      expect(await logsOf(stage.k8s, { name: metadata.name, namespace: HOME })).not.toMatch(
        /"level":"(warn|error|fatal)"/,
      );
    }
    expect(await stage.helm(['test', RELEASE, '--timeout', '4m'])).toMatch(/Phase: +Succeeded/);
  });

  test('turns a MarketplaceSource into Skills that a user of the cluster sees Ready, images included', async () => {
    await repository.commit(market('Do it.', 'hello'));
    await stage.k8s.apply([
      source(),
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'RoleBinding',
        metadata: { name: 'viewer', namespace: TEAM },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
        subjects: [{ kind: 'ServiceAccount', name: 'default', namespace: TEAM }],
      },
    ]);
    await waitReady(stage.k8s, stage.source('market'), ROLLOUT_MS);
    await waitReady(stage.k8s, stage.skill(OWN), BUILT_MS);
    await stage.k8s.waitCondition(stage.source('market'), 'SkillsHealthy');
    const { image } = (await stage.pods())[0]?.spec.containers[0] ?? {};
    const path = `/apis/${API_VERSION}/namespaces/${TEAM}/skills`;
    const { log } = await runPod(stage.k8s, { name: 'viewer', namespace: TEAM, image, container: reader(path) });
    const seen = (JSON.parse(log) as { items: K8sObject[] }).items;
    expect(
      seen
        .filter(isReady)
        .map(({ metadata }) => metadata.name)
        .sort(),
    ).toEqual(['market.p.own-image', 'market.p.plain', 'market.p.with-runtime']);
    const stored = await listObjects(stage.info.s3, stage.bucket);
    expect(stored.filter(({ key }) => key.endsWith('/manifest.json'))).toHaveLength(SKILLS);
    expect(await jobs()).toHaveLength(1);
  });

  const withConfig = (more: object): Values => ({ ...values, config: { ...(values.config as object), ...more } });

  /** Something replaces every pod; the Skills must not notice. */
  async function replacesPods(act: () => Promise<unknown>): Promise<void> {
    const old = await stage.leader();
    const before = await versions();
    const since = bookmark(stage.info);
    await act();
    await stage.rolledOut();
    const names = (await stage.pods()).map(({ metadata }) => metadata.name);
    expect(names).not.toContain(old);
    expect(names).toContain(await settledLeader(stage, SKILLS, old));
    expect(await versions()).toEqual(before);
    expect(writesSince(stage.info, since, isAboutSkills)).toEqual([]);
    expect(await jobs()).toHaveLength(1);
  }

  test('is upgraded with another setting: every pod is replaced, and nothing is written or built again', async () => {
    await replacesPods(() => stage.upgrade(withConfig({ skillWorkers: 8 })));
  });

  test('takes a changed log level over in the running pods', async () => {
    const names = async () => (await stage.pods()).map(({ metadata }) => metadata.name).sort();
    const before = await names();
    await stage.upgrade(withConfig({ skillWorkers: 8, logLevel: 'debug' }));
    const told = async () => {
      const logs = await Promise.all(before.map((name) => logsOf(stage.k8s, { name, namespace: HOME })));
      return logs.every((log) => log.includes('the log level is debug'));
    };
    await eventually(told, { timeoutMs: ROLLOUT_MS, what: 'the other log level in both pods', intervalMs: 500 });
    expect(await names()).toEqual(before);
  });

  test('goes back to the revision before in the same way', async () => {
    await replacesPods(() => stage.helm(['rollback', RELEASE, '1']));
  });

  test('hands a build over when the leader goes, and makes nothing twice', async () => {
    const leader = await stage.leader();
    await push('Do it.', 'hello again');
    const building = ({ status }: K8sObject) => status?.candidate?.phase === 'Building';
    await stage.k8s.waitFor(stage.skill(OWN), building, { timeoutMs: ROLLOUT_MS });
    const { version } = (await stage.k8s.get(stage.skill(OWN)))?.status.candidate ?? {};
    await stage.k8s.delete({ apiVersion: 'v1', kind: 'Pod', name: leader, namespace: HOME });
    const served = ({ status }: K8sObject) => status?.served?.version === version;
    await stage.k8s.waitFor(stage.skill(OWN), (skill) => isReady(skill) && served(skill), { timeoutMs: BUILT_MS });
    expect(await stage.leader()).not.toBe(leader);
    expect(await jobs()).toHaveLength(2);
    await stage.rolledOut();
  });

  test('goes on when the leader hangs, and the one that wakes up again steps back', async () => {
    const leader = await stage.leader();
    const pod = (await stage.pods()).find(({ metadata }) => metadata.name === leader) as K8sObject;
    const pid = nodeProcessOf(pod);
    process.kill(pid, 'SIGSTOP');
    const since = bookmark(stage.info);
    await push('Do it well.', 'hello again');
    const before = (await stage.k8s.get(stage.skill('market.p.plain')))?.status.served.version;
    await stage.k8s.waitFor(
      stage.skill('market.p.plain'),
      (skill) => isReady(skill) && skill.status.served.version !== before,
      { timeoutMs: ROLLOUT_MS },
    );
    const next = await settledLeader(stage, SKILLS, leader);
    process.kill(pid, 'SIGCONT');
    const restarted = ({ status }: K8sObject) => status?.containerStatuses?.[0]?.restartCount > 0;
    await stage.k8s.waitFor({ apiVersion: 'v1', kind: 'Pod', name: leader, namespace: HOME }, restarted, {
      timeoutMs: ROLLOUT_MS,
    });
    expect(await stage.leader()).toBe(next);
    const writes = writesSince(stage.info, since, isAboutSkills).filter(({ name }) => name === 'market.p.plain');
    expect(writes.map(({ verb, resource, code }) => `${verb} ${resource} ${code}`)).toEqual([
      'patch skills 200',
      'patch skills/status 200',
    ]);
    await stage.rolledOut();
  });

  test('lets a namespace go with everything in it, and takes its templates and images along', async () => {
    await stage.k8s.delete({ apiVersion: 'v1', kind: 'Namespace', name: TEAM });
    await stage.k8s.waitGone({ apiVersion: 'v1', kind: 'Namespace', name: TEAM }, { timeoutMs: ROLLOUT_MS });
    const left = () => [...stage.e2b.templates.values()].filter(({ alias }) => alias.startsWith('own-image-'));
    await eventually(() => left().length === 0, { timeoutMs: ROLLOUT_MS, what: 'the end of the templates' });
  });

  test('leaves what is documented when it is uninstalled, and no more', async () => {
    await stage.helm(['uninstall', RELEASE, '--wait', '--timeout', '4m']);
    await eventually(async () => (await stage.pods()).length === 0, {
      timeoutMs: ROLLOUT_MS,
      what: 'the end of the pods',
    });
    await stage.k8s.waitGone({ apiVersion: 'v1', kind: 'Namespace', name: BUILDS }, { timeoutMs: ROLLOUT_MS });
    expect(await contentOf(stage, HOME)).toMatchInlineSnapshot(`
      [
        "ConfigMap kube-root-ca.crt",
        "ConfigMap skill-operator-installation",
        "Lease skill-operator",
        "Secret cubesandbox",
        "Secret e2b",
        "Secret registry",
        "Secret skill-store",
        "ServiceAccount default",
      ]
    `);
    expect(await stage.k8s.list(CRD)).toHaveLength(2);
  });

  test('comes with an S3 server to try it out, over what it left; with crds.keep=false no CRD is left', async () => {
    await stage.k8s.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: TEAM } });
    await stage.install({ ...(await stage.tryOutValues()), crds: { keep: false } });
    await stage.rolledOut();
    const s3 = { apiVersion: 'apps/v1', kind: 'Deployment', name: `${RELEASE}-s3`, namespace: HOME };
    await stage.k8s.waitFor(s3, ({ status }) => status?.readyReplicas === 1, { timeoutMs: ROLLOUT_MS });
    await stage.k8s.apply(source());
    await waitReady(stage.k8s, stage.skill('market.p.plain'), ROLLOUT_MS);
    await stage.k8s.waitCondition(stage.skill('market.p.plain'), 'Materialized');
    await stage.helm(['uninstall', RELEASE, '--wait', '--timeout', '4m']);
    for (const name of ['skills.skills.tfrobot.io', 'marketplacesources.skills.tfrobot.io'])
      await stage.k8s.waitGone({ ...CRD, name }, { timeoutMs: ROLLOUT_MS });
    const namespaces = [TEAM, HOME].map((name) => ({ apiVersion: 'v1', kind: 'Namespace', name }));
    for (const namespace of namespaces) await stage.k8s.delete(namespace);
    for (const namespace of namespaces) await stage.k8s.waitGone(namespace, { timeoutMs: ROLLOUT_MS });
  });
});

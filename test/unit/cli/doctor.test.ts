import { describe, expect, test } from 'vitest';
import { waiting } from '../../../src/base/errors.ts';
import { crdFinding } from '../../../src/cli/doctor/api.ts';
import { podSecurityFinding } from '../../../src/cli/doctor/builds.ts';
import { doctorText } from '../../../src/cli/doctor/doctor.ts';
import { blockFindings, deploymentFinding, leaseFinding } from '../../../src/cli/doctor/operator.ts';
import { judged } from '../../../src/cli/doctor/outside.ts';
import { operatorRights } from '../../../src/cli/doctor/rights.ts';
import { complaints, seenIn } from '../../../src/cli/doctor/seen.ts';
import { painter } from '../../../src/cli/terminal.ts';
import { KubeError } from '../../../src/kube/errors.ts';
import { SKILLS, SOURCES } from './objects.ts';

const text = (...findings: Parameters<typeof doctorText>[0]) => `\n${doctorText(findings, painter(false))}`;
const NAME = 'skills.skills.tfrobot.io';
const crd = (more: { revision?: string; established?: string; served?: boolean; deleted?: boolean } = {}) => ({
  metadata: {
    name: NAME,
    ...(more.revision ? { annotations: { 'skills.tfrobot.io/crd-revision': more.revision } } : {}),
    ...(more.deleted ? { deletionTimestamp: 'now' } : {}),
  },
  spec: { versions: [{ name: 'v1alpha1', served: more.served ?? true }] },
  status: {
    conditions: [
      {
        type: 'Established',
        status: (more.established ?? 'True') as 'True',
        reason: '',
        message: '',
        lastTransitionTime: '',
      },
    ],
  },
});

test('CRDs', () => {
  const findings = [
    undefined,
    crd({ deleted: true }),
    crd({ established: 'False' }),
    crd({ served: false }),
    crd({ revision: '1002004' }),
    crd({ revision: '1001000' }),
    crd({ revision: '1002003' }),
    crd(),
  ].map((one) => crdFinding(NAME, one, '1.2.3'));
  expect(text(...findings)).toMatchInlineSnapshot(`
    "
    FAIL  CRDs             skills.skills.tfrobot.io is not installed
                           fix: helm upgrade --install skill-operator …, or kubectl apply --server-side -f crds/
    FAIL  CRDs             skills.skills.tfrobot.io is being deleted, and every object of its kind with it
                           fix: skillctl uninstall shows what is left
    FAIL  CRDs             skills.skills.tfrobot.io is not served by the API server
                           fix: kubectl describe crd skills.skills.tfrobot.io
    FAIL  CRDs             skills.skills.tfrobot.io serves no version, this skillctl knows v1alpha1
                           fix: use the skillctl of the installed release
    warn  CRDs             skills.skills.tfrobot.io is of a newer release than this skillctl 1.2.3
                           fix: use the skillctl of that release
    warn  CRDs             skills.skills.tfrobot.io is of an older release than this skillctl 1.2.3
                           fix: helm upgrade skill-operator …
    ok    CRDs             skills.skills.tfrobot.io serves v1alpha1 of release 1.2.3
    ok    CRDs             skills.skills.tfrobot.io serves v1alpha1

    2 ok, 2 warn, 4 FAIL
    "
  `);
});

test('Deployment and Lease', () => {
  const of = (replicas: number, readyReplicas: number) =>
    deploymentFinding({ metadata: { name: 'skill-operator' }, spec: { replicas }, status: { readyReplicas } }, 'ops');
  const lease = [
    leaseFinding({ lease: 'skill-operator', alive: true, holder: 'pod-1', ageMs: 1500 }, 'ops'),
    leaseFinding({ lease: 'skill-operator', alive: false, holder: undefined }, 'ops'),
    leaseFinding({ lease: 'skill-operator', alive: false, holder: '' }, 'ops'),
    leaseFinding({ lease: 'skill-operator', alive: false, holder: 'pod-1\u001b[2J', ageMs: 400_000 }, 'ops'),
  ];
  expect(
    text(deploymentFinding(undefined, 'ops'), of(0, 0), of(2, 0), of(2, 1), of(2, 2), ...lease),
  ).toMatchInlineSnapshot(`
    "
    warn  Deployment       none was found; is the operator started by hand?
                           fix: name its namespace with --operator-namespace, or install the chart
    FAIL  Deployment       skill-operator is scaled to 0
                           fix: kubectl -n ops scale deploy/skill-operator --replicas=1
    FAIL  Deployment       no pod of skill-operator is ready
                           fix: kubectl -n ops describe deploy/skill-operator; kubectl -n ops logs deploy/skill-operator --previous
    warn  Deployment       1 of 2 pods of skill-operator are ready
                           fix: kubectl -n ops describe deploy/skill-operator; kubectl -n ops logs deploy/skill-operator --previous
    ok    Deployment       skill-operator in ops, 2 pods ready
    ok    Lease            skill-operator is held by pod-1, renewed 1s ago
    FAIL  Lease            namespace ops has no Lease skill-operator: no operator has worked there
                           fix: kubectl -n ops get pods; without one: kubectl -n ops rollout restart deploy/skill-operator; another namespace: --operator-namespace
    FAIL  Lease            nobody holds skill-operator: the operator has stopped
                           fix: kubectl -n ops get pods; without one: kubectl -n ops rollout restart deploy/skill-operator
    FAIL  Lease            pod-1\\u{1b}[2J no longer renews skill-operator, 6m ago by its own clock: no operator works
                           fix: kubectl -n ops get pods; without one: kubectl -n ops rollout restart deploy/skill-operator

    2 ok, 2 warn, 5 FAIL
    "
  `);
});

test('Pod Security of the build namespace', () => {
  const of = (level?: string) =>
    podSecurityFinding('builds', {
      metadata: { name: 'builds', labels: level ? { 'pod-security.kubernetes.io/enforce': level } : {} },
    });
  expect(
    text(podSecurityFinding('builds', undefined), of('baseline'), of('restricted'), of('privileged'), of()),
  ).toMatchInlineSnapshot(`
    "
    FAIL  Pod Security     the build namespace builds does not exist
                           fix: helm upgrade with builds.createNamespace=true, or create it and label it baseline
    ok    Pod Security     build namespace builds enforces baseline
    FAIL  Pod Security     build namespace builds enforces restricted, under which no Dockerfile can be built
                           fix: kubectl label --overwrite namespace builds pod-security.kubernetes.io/enforce=baseline
    warn  Pod Security     build namespace builds enforces privileged: a build pod that somebody else makes there could take over the node
                           fix: kubectl label --overwrite namespace builds pod-security.kubernetes.io/enforce=baseline
    warn  Pod Security     build namespace builds enforces nothing: a build pod that somebody else makes there could take over the node
                           fix: kubectl label --overwrite namespace builds pod-security.kubernetes.io/enforce=baseline

    1 ok, 2 warn, 2 FAIL
    "
  `);
});

test('blocks, with the command that lifts each; an entry beyond recognition is told too', () => {
  const block = JSON.stringify({ token: 't', message: '9 of 10 packages are missing', allow: 'kubectl annotate …' });
  expect(text(...blockFindings({ StoreSuspect: block, SweepBlocked: '{' }))).toMatchInlineSnapshot(`
    "
    warn  blocks           StoreSuspect: 9 of 10 packages are missing
                           fix: if that is meant: kubectl annotate …
    warn  blocks           SweepBlocked: its entry in ConfigMap skill-operator-state cannot be read
                           fix: remove the entry; the operator writes it anew

    0 ok, 2 warn, 0 FAIL
    "
  `);
  expect(blockFindings({})).toEqual([]);
});

describe('what a look from this machine means', () => {
  const down = waiting('StoreUnavailable', 'no connection to minio.minio.svc:9000');
  const target = (address: string, ownCA = false) => ({ check: 'store', address, ownCA, family: /^Store/ });
  test.each([
    ['an address inside the cluster', 'http://minio.minio.svc:9000', down, 'warn'],
    ['a name without a dot', 'http://minio:9000', down, 'warn'],
    ['a public address', 'https://s3.example.com', down, 'FAIL'],
    ['a refused key', 'http://minio.minio.svc:9000', waiting('StoreAccessDenied', 'denied'), 'FAIL'],
    ['a Secret that may not be read', 'https://s3.example.com', new KubeError(403, 'Forbidden', 'no'), 'warn'],
    ['a registry inside', 'registry.default.svc:5000', waiting('RegistryUnavailable', 'no'), 'warn'],
  ] as const)('%s', (_, address, error, level) => {
    expect(judged(target(address), error, 0)).toMatchObject({ level, fix: expect.any(String) });
  });
  test('an authority that only the pod has', () => {
    expect(judged(target('https://s3.example.com', true), down, 3).message).toContain('3 Skills are Ready');
  });
});

test('the operator’s own word counts more than a look', () => {
  const seen = seenIn([...Object.values(SKILLS), ...Object.values(SOURCES)]);
  expect(seen.ready).toBe(3);
  expect(text(...complaints('store', /^Store/, seen), ...complaints('engine', /^Engine/, seen))).toMatchInlineSnapshot(`
    "
    FAIL  store            the operator says StoreUnavailable of 1 object: no connection to minio:9000
                           fix: docs/errors.md explains StoreUnavailable
    FAIL  engine           the operator says EngineUnavailable of 1 object: engine unavailable: E2B did not answer
                           fix: docs/errors.md explains EngineUnavailable

    0 ok, 0 warn, 2 FAIL
    "
  `);
});

test('rights in one namespace or everywhere, and those of builds where builds are on', () => {
  const home = { namespace: 'ops', settingsFrom: '', buildNamespace: 'builds' };
  const where = (settings: Parameters<typeof operatorRights>[0]['settings']) => [
    ...new Set(operatorRights({ ...home, ...(settings ? { settings } : {}) }).map(({ namespace }) => namespace)),
  ];
  expect(where(undefined)).toEqual(['', 'ops']);
  expect(where({ watchNamespaces: ['a', 'b'], build: {} })).toEqual(['a', 'b', 'ops', 'builds']);
  expect(where({ watchNamespaces: 'a,b' })).toEqual(['a', 'b', 'ops']);
});

import { describe, expect, inject, test } from 'vitest';
import { ANNOTATIONS } from '../../../src/api/labels.ts';
import { REASONS } from '../../../src/base/reasons.ts';
import { condition } from '../../support/k8s.ts';
import { applySecret, applySource, requestPass, waitNotReady, waitReady } from '../../support/market.ts';
import { gitFaults } from './git-fault-table.ts';
import { GitWorld, otherHostKey, unique } from './git-world.ts';
import { gitRequests, listSkills } from './support.ts';

const { git } = inject('cluster');
const world = new GitWorld();

const WAITS =
  /; retry now: kubectl -n \S+ annotate marketplacesource \S+ skills\.tfrobot\.io\/requestedAt="\$\(date \+%s\)" --overwrite$/;

describe('a source that cannot be read says why, in its own reason, and what to do', () => {
  test.for(gitFaults(world))('$title: $reason', async ({ spec, reason, policy, says }) => {
    const ref = await world.applied(await spec());
    const object = await waitNotReady(world.operator.k8s, ref, reason);
    const message = condition(object, 'Ready')?.message ?? '';
    expect(message).toMatch(says);
    expect(Object.keys(REASONS)).toContain(reason);
    expect(condition(object, 'Stalled')?.reason).toBe(policy === 'Stalled' ? reason : undefined);
    expect(condition(object, 'Reconciling')?.reason).toBe(policy === 'Stalled' ? undefined : 'ProgressingWithRetry');
    if (policy === 'Waiting') expect(message).toMatch(WAITS);
    expect(message).not.toMatch(/wrong-password|wrong-token|canary/);
    expect(await listSkills(world.operator, ref.name)).toEqual([]);
    await world.operator.k8s.delete(ref);
  });

  test('sends no credential to where a redirect leads, nor to a host that the Secret does not name', async () => {
    expect(gitRequests(world.operator, world.repository, 'unauthorized')).toBe(0);
    await waitReady(world.operator.k8s, await applySource(world.operator, unique('sibling'), world.repository));
  });
});

describe('what was wrong outside is put right outside, and the next request finds it so', () => {
  test('a host key', async () => {
    const name = await world.secret({ identity: git.sshIdentity, known_hosts: otherHostKey() });
    const ref = await world.applied({ git: { url: world.url('sshUrl') }, secretRef: { name }, include: ['docs/pdf'] });
    await waitNotReady(world.operator.k8s, ref, 'HostKeyMismatch');
    await world.operator.k8s.patch(
      { apiVersion: 'v1', kind: 'Secret', name, namespace: world.operator.namespace },
      { stringData: { known_hosts: git.sshKnownHosts } },
    );
    await requestPass(world.operator.k8s, ref);
    await waitReady(world.operator.k8s, ref);
    await world.operator.k8s.delete(ref);
  });

  test('the authority of a certificate, and a Secret that was missing', async () => {
    const name = unique('late');
    const ref = await world.applied({
      git: { url: world.url('httpsUrl') },
      secretRef: { name },
      include: ['docs/pdf'],
    });
    await waitNotReady(world.operator.k8s, ref, 'SecretNotFound');
    await applySecret(world.operator, name, { 'ca.crt': git.caCert });
    await requestPass(world.operator.k8s, ref);
    await waitReady(world.operator.k8s, ref);
    await world.operator.k8s.delete(ref);
  });

  test.for([
    ['basic', () => ({ username: git.username, password: git.password })],
    ['bearer', () => ({ bearerToken: `${git.bearerToken}\n` })],
    ['bound to this host', () => ({ bearerToken: git.bearerToken })],
  ] as [string, () => Record<string, string>][])('a password or token: %s', async ([kind, values]) => {
    const hosts: Record<string, string> = kind.startsWith('bound')
      ? { [ANNOTATIONS.hosts]: 'git.example.com, 127.0.0.1' }
      : {};
    const ref = await world.applied({
      ...(await world.withSecret(world.url('privateUrl'), values(), hosts)),
      include: ['docs/pdf'],
    });
    await waitReady(world.operator.k8s, ref);
    await world.operator.k8s.delete(ref);
  });
});

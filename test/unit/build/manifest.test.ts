import type { Container } from 'kubernetes-types/core/v1.d.ts';
import { describe, expect, test } from 'vitest';
import { buildJob, buildSecret } from '../../../src/build/manifest.ts';
import { urlSeconds } from '../../../src/build/settings.ts';
import { containersOf, FULL, INPUT, SETTINGS, specOf } from './samples.ts';

const volumesAt = (container: Container | undefined) => container?.volumeMounts?.map(({ name }) => name);

describe('buildJob', () => {
  test('is the same for the same input, and has another name for another attempt', () => {
    expect(buildJob(INPUT, SETTINGS)).toEqual(buildJob(structuredClone(INPUT), structuredClone(SETTINGS)));
    expect(buildJob({ ...INPUT, attempt: 2 }, SETTINGS).metadata?.name).toMatch(/-2$/);
  });

  test('runs fetch and build before push', () => {
    const spec = specOf(buildJob(INPUT, SETTINGS));
    expect(spec.initContainers?.map(({ name }) => name)).toEqual(['fetch', 'build']);
    expect(spec.containers.map(({ name }) => name)).toEqual(['push']);
  });

  test('mounts the URLs in fetch alone and the push credential in push alone', () => {
    const { fetch, build, push } = containersOf(buildJob(INPUT, SETTINGS));
    expect(volumesAt(fetch)).toEqual(['urls', 'context', 'dockerfile']);
    expect(volumesAt(build)).toEqual(['context', 'dockerfile', 'image']);
    expect(volumesAt(push)).toEqual(['image', 'work', 'credential']);
  });

  test('gives the author’s commands no secret, no token and nothing from a Secret by environment', () => {
    const job = buildJob(INPUT, FULL);
    const { build } = containersOf(job);
    expect(specOf(job).automountServiceAccountToken).toBe(false);
    expect(build?.envFrom).toBeUndefined();
    expect(build?.env?.filter((variable) => variable.valueFrom)).toEqual([]);
    const secrets = specOf(job).volumes?.filter((volume) => volume.secret ?? volume.projected);
    expect(secrets?.map(({ name }) => name)).toEqual(['urls']);
    expect(volumesAt(build)).not.toContain('urls');
  });

  test('keeps every mount of the author’s container below a directory that no snapshot takes', () => {
    const { build } = containersOf(buildJob(INPUT, FULL));
    expect(build?.volumeMounts?.filter(({ mountPath }) => !mountPath.startsWith('/kaniko/'))).toEqual([]);
  });

  test('gives the author’s container the context read-only', () => {
    const { build } = containersOf(buildJob(INPUT, SETTINGS));
    const readOnly = build?.volumeMounts?.filter((mount) => mount.readOnly).map(({ name }) => name);
    expect(readOnly).toEqual(['context', 'dockerfile']);
  });

  test('ends when waiting and running may have taken their longest, and the URLs live a little longer', () => {
    const job = buildJob(INPUT, SETTINGS);
    const pod = job.spec?.template.spec?.activeDeadlineSeconds;
    expect(pod).toBe(2100);
    // The Job comes later: when it ends a pod, the log is lost.
    expect(job.spec?.activeDeadlineSeconds).toBe(2160);
    expect(urlSeconds(SETTINGS)).toBeGreaterThan(2100);
  });

  test('has labels that Kubernetes takes for the longest names there are', () => {
    const job = buildJob(
      {
        ...INPUT,
        skill: { namespace: 'n'.repeat(63), name: 'a'.repeat(253), uid: 'u'.repeat(80) },
        engine: 'cubesandbox',
        attempt: 999,
      },
      { ...SETTINGS, installation: `i${'-'.repeat(62)}` },
    );
    const values = Object.values(job.spec?.template.metadata?.labels ?? {});
    expect(values.filter((value) => !/^[A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?$/.test(value))).toEqual([]);
    expect(job.metadata?.name?.length).toBeLessThanOrEqual(63);
  });
});

describe('buildSecret', () => {
  test('belongs to the Job of its attempt and holds the URLs', () => {
    const urls = { tar: 'https://s3/p?X=1', dockerfile: 'https://s3/d?X=2' };
    const secret = buildSecret(INPUT, SETTINGS, 'job-uid', urls);
    expect(secret.metadata?.name).toBe(buildJob(INPUT, SETTINGS).metadata?.name);
    expect(secret.metadata?.ownerReferences).toEqual([
      { apiVersion: 'batch/v1', kind: 'Job', name: secret.metadata?.name, uid: 'job-uid', controller: true },
    ]);
    const decoded = Object.entries(secret.data ?? {}).map(([key, value]) => [
      key,
      Buffer.from(value, 'base64').toString(),
    ]);
    expect(Object.fromEntries(decoded)).toEqual({ 'package.tar': urls.tar, Dockerfile: urls.dockerfile });
  });

  test('leaves no URL in the Job', () => {
    expect(JSON.stringify(buildJob(INPUT, SETTINGS))).not.toMatch(/https?:/);
  });
});

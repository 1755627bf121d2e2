import type { Job } from 'kubernetes-types/batch/v1.d.ts';
import type { Container, PodSpec, Secret, Volume } from 'kubernetes-types/core/v1.d.ts';
import { MANAGED_BY } from '../api/labels.ts';
import { labelValue } from '../api/names.ts';
import { CA_FILE } from './arguments.ts';
import { buildContainer, fetchContainer, pushContainer } from './containers.ts';
import { type BuildInput, type ContextURLs, URL_KEYS } from './input.ts';
import {
  BUILD_ANNOTATIONS,
  BUILD_COMPONENT,
  BUILD_LABELS,
  type BuildIdentity,
  imageRepository,
  jobName,
} from './names.ts';
import { type BuildSettings, jobSeconds, podSeconds } from './settings.ts';

const identityOf = ({ skill, engine, inputHash }: BuildInput, settings: BuildSettings): BuildIdentity => ({
  installation: settings.installation,
  namespace: skill.namespace,
  skill: skill.name,
  uid: skill.uid,
  engine,
  inputHash,
});

/** `<host>/<repository>` that an attempt pushes to. */
const destinationOf = (input: BuildInput, settings: BuildSettings): string =>
  `${settings.registry.host}/${imageRepository(settings.registry.prefix, identityOf(input, settings))}`;

function labelsOf(input: BuildInput, settings: BuildSettings): Record<string, string> {
  return {
    [BUILD_LABELS.managedBy]: MANAGED_BY,
    [BUILD_LABELS.component]: BUILD_COMPONENT,
    [BUILD_LABELS.installation]: labelValue(settings.installation),
    [BUILD_LABELS.namespace]: input.skill.namespace,
    [BUILD_LABELS.skillUID]: labelValue(input.skill.uid),
    [BUILD_LABELS.engine]: input.engine,
    [BUILD_LABELS.version]: input.digest.slice(0, 12),
    [BUILD_LABELS.attempt]: String(input.attempt),
  };
}

function annotationsOf(input: BuildInput, settings: BuildSettings): Record<string, string> {
  return {
    [BUILD_ANNOTATIONS.skill]: `${input.skill.namespace}/${input.skill.name}`,
    [BUILD_ANNOTATIONS.digest]: input.digest,
    [BUILD_ANNOTATIONS.inputHash]: input.inputHash,
    [BUILD_ANNOTATIONS.image]: destinationOf(input, settings),
  };
}

/** Room for a layout beside its blobs: index, manifest, skopeo's own files. */
const SPARE_BYTES = 256 * 1024 * 1024;

function volumesOf(name: string, settings: BuildSettings): Volume[] {
  const imageLimit = String(settings.maxImageBytes + SPARE_BYTES);
  const { registry, caBundle } = settings;
  return [
    { name: 'urls', secret: { secretName: name, defaultMode: 0o400 } },
    { name: 'context', emptyDir: { sizeLimit: '256Mi' } },
    { name: 'dockerfile', emptyDir: { sizeLimit: '1Mi' } },
    { name: 'image', emptyDir: { sizeLimit: imageLimit } },
    { name: 'work', emptyDir: { sizeLimit: imageLimit } },
    ...(registry.pushSecret
      ? [
          {
            name: 'credential',
            secret: {
              secretName: registry.pushSecret,
              items: [{ key: '.dockerconfigjson', path: 'config.json' }],
              defaultMode: 0o400,
            },
          },
        ]
      : []),
    ...(caBundle
      ? [{ name: 'ca', configMap: { name: caBundle.configMap, items: [{ key: caBundle.key, path: CA_FILE }] } }]
      : []),
  ];
}

function podSpec(name: string, containers: { init: Container[]; main: Container }, settings: BuildSettings): PodSpec {
  const { nodeSelector, tolerations, runtimeClassName, hostUsers, priorityClassName } = settings.placement ?? {};
  const { imagePullSecrets = [] } = settings;
  return {
    restartPolicy: 'Never',
    activeDeadlineSeconds: podSeconds(settings),
    serviceAccountName: settings.serviceAccount,
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
    nodeSelector: {
      'kubernetes.io/os': 'linux',
      'kubernetes.io/arch': settings.architecture,
      ...nodeSelector,
    },
    ...(tolerations?.length ? { tolerations: tolerations.map((toleration) => ({ ...toleration }) as never) } : {}),
    ...(runtimeClassName === undefined ? {} : { runtimeClassName }),
    ...(hostUsers === undefined ? {} : { hostUsers }),
    ...(priorityClassName === undefined ? {} : { priorityClassName }),
    ...(imagePullSecrets.length ? { imagePullSecrets: imagePullSecrets.map((secret) => ({ name: secret })) } : {}),
    initContainers: containers.init,
    containers: [containers.main],
    volumes: volumesOf(name, settings),
  };
}

/** A mesh's sidecar has no network while init containers run, and would keep the Job from ending. */
const NO_SIDECAR = { 'sidecar.istio.io/inject': 'false' } as const;

/**
 * The Job of one attempt, suspended: the caller then creates `buildSecret()` with the Job's uid and only then sets `spec.suspend` to
 * false with a JSON merge patch (an apply of that field alone would take the others away).
 * Pure; the same input gives the same object. It runs fetch, build and push one after the other and passes Pod Security `baseline`.
 */
export function buildJob(input: BuildInput, settings: BuildSettings): Job {
  const name = jobName(identityOf(input, settings), input.attempt);
  const labels = labelsOf(input, settings);
  const annotations = annotationsOf(input, settings);
  const containers = {
    init: [fetchContainer(input, settings), buildContainer(settings)],
    main: pushContainer(destinationOf(input, settings), settings),
  };
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name, namespace: settings.namespace, labels, annotations },
    spec: {
      suspend: true,
      // The operator decides about another attempt; the Job only replaces pods that the cluster itself took away.
      backoffLimit: 0,
      podFailurePolicy: {
        rules: [{ action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget', status: 'True' }] }],
      },
      podReplacementPolicy: 'Failed',
      activeDeadlineSeconds: jobSeconds(settings),
      ttlSecondsAfterFinished: settings.deadlines.keepSeconds,
      template: {
        metadata: { labels: { ...labels, ...NO_SIDECAR }, annotations: { ...annotations, ...NO_SIDECAR } },
        spec: podSpec(name, containers, settings),
      },
    },
  };
}

/** The Secret with the URLs of one attempt; it goes with the Job that owns it. `jobUID` is the metadata.uid of that Job. */
export function buildSecret(input: BuildInput, settings: BuildSettings, jobUID: string, urls: ContextURLs): Secret {
  const name = jobName(identityOf(input, settings), input.attempt);
  const encode = (text: string) => Buffer.from(text).toString('base64');
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    type: 'Opaque',
    metadata: {
      name,
      namespace: settings.namespace,
      labels: labelsOf(input, settings),
      ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name, uid: jobUID, controller: true }],
    },
    data: { [URL_KEYS.tar]: encode(urls.tar), [URL_KEYS.dockerfile]: encode(urls.dockerfile) },
  };
}

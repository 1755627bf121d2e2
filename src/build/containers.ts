/** The three containers of a build pod, in the order in which they run. */
import type { Container, EnvVar, SecurityContext, VolumeMount } from 'kubernetes-types/core/v1.d.ts';
import { BUILDER_ENVIRONMENT, builderArguments, CA_FILE, DOCKERFILE, LAYOUT, PATHS } from './arguments.ts';
import type { BuildInput } from './input.ts';
import type { BuildSettings, ContainerResources } from './settings.ts';

/** Names of the containers. */
export const STEPS = ['fetch', 'build', 'push'] as const;
/** One of the containers. */
export type Step = (typeof STEPS)[number];

/** Capabilities without which RUN, USER and COPY --chown do not work; Pod Security `baseline` allows them all. */
const BUILD_CAPABILITIES = ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'SETGID', 'SETUID', 'SETFCAP', 'KILL'];

/**
 * Root without a single capability, for the two steps of our own: COPY keeps the owner of the context's files, and in an image they
 * belong to root; and Kaniko leaves layers that their owner alone may read.
 */
const LOCKED: SecurityContext = {
  runAsUser: 0,
  runAsGroup: 0,
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ['ALL'] },
};

const resourcesOf = ({ requests, limits }: ContainerResources) => ({
  requests: { ...requests },
  limits: { ...limits },
});

function proxyEnvironment({ proxy }: BuildSettings): EnvVar[] {
  const values: Record<string, string | undefined> = {
    HTTP_PROXY: proxy?.http,
    HTTPS_PROXY: proxy?.https,
    NO_PROXY: proxy?.noProxy,
  };
  return Object.entries(values).flatMap(([name, value]) =>
    value === undefined ? [] : [name, name.toLowerCase()].map((variable) => ({ name: variable, value })),
  );
}

function proxyArguments({ proxy }: BuildSettings): string[] {
  return [
    ...(proxy?.http ? [`--http-proxy=${proxy.http}`] : []),
    ...(proxy?.https ? [`--https-proxy=${proxy.https}`] : []),
    ...(proxy?.noProxy ? [`--no-proxy=${proxy.noProxy}`] : []),
  ];
}

const caMount = (settings: BuildSettings, mountPath: string): VolumeMount[] =>
  settings.caBundle ? [{ name: 'ca', mountPath, readOnly: true }] : [];

/** Downloads and verifies the context; alone in holding the URLs. */
export function fetchContainer(input: BuildInput, settings: BuildSettings): Container {
  const { tar, dockerfile } = input.context;
  return {
    name: 'fetch',
    image: settings.operatorImage,
    command: [...settings.jobsCommand, 'fetch'],
    args: [
      `--urls=${PATHS.urls}`,
      `--context=${PATHS.context}`,
      `--dockerfile=${PATHS.dockerfileDir}/${DOCKERFILE}`,
      `--tar-sha256=${tar.sha256}`,
      `--tar-size=${tar.size}`,
      `--dockerfile-sha256=${dockerfile.sha256}`,
      `--dockerfile-size=${dockerfile.size}`,
      ...(settings.caBundle ? [`--ca=${PATHS.ca}/${CA_FILE}`] : []),
      ...proxyArguments(settings),
    ],
    terminationMessagePolicy: 'FallbackToLogsOnError',
    securityContext: LOCKED,
    resources: resourcesOf(settings.resources.fetch),
    volumeMounts: [
      { name: 'urls', mountPath: PATHS.urls, readOnly: true },
      { name: 'context', mountPath: PATHS.context },
      { name: 'dockerfile', mountPath: PATHS.dockerfileDir },
      ...caMount(settings, PATHS.ca),
    ],
  };
}

/** Runs the author's Dockerfile; holds no secret, no token and no credential. */
export function buildContainer(settings: BuildSettings): Container {
  return {
    name: 'build',
    image: settings.builderImage,
    args: builderArguments(settings),
    env: [
      ...Object.entries(BUILDER_ENVIRONMENT).map(([name, value]) => ({ name, value })),
      ...proxyEnvironment(settings),
    ],
    // The message file stays empty, so that the end of the log takes its place.
    terminationMessagePolicy: 'FallbackToLogsOnError',
    securityContext: {
      runAsUser: 0,
      runAsGroup: 0,
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'], add: [...BUILD_CAPABILITIES] },
    },
    resources: resourcesOf(settings.resources.build),
    volumeMounts: [
      { name: 'context', mountPath: PATHS.context, readOnly: true },
      { name: 'dockerfile', mountPath: PATHS.dockerfileDir, readOnly: true },
      { name: 'image', mountPath: PATHS.imageDir },
      ...caMount(settings, PATHS.builderCA),
    ],
  };
}

/** Verifies what the build left and pushes it; alone in holding the push credential. */
export function pushContainer(image: string, settings: BuildSettings): Container {
  const { insecure, pushSecret } = settings.registry;
  return {
    name: 'push',
    image: settings.operatorImage,
    command: [...settings.jobsCommand, 'push'],
    args: [
      `--layout=${PATHS.layout}/${LAYOUT}`,
      `--work=${PATHS.work}`,
      `--image=${image}`,
      `--max-bytes=${settings.maxImageBytes}`,
      '--result=/dev/termination-log',
      ...(pushSecret ? [`--credential=${PATHS.credential}/config.json`] : []),
      ...(insecure ? ['--insecure'] : []),
      ...(settings.caBundle ? [`--ca=${PATHS.ca}`] : []),
      ...proxyArguments(settings),
    ],
    terminationMessagePolicy: 'FallbackToLogsOnError',
    securityContext: LOCKED,
    resources: resourcesOf(settings.resources.push),
    volumeMounts: [
      { name: 'image', mountPath: PATHS.layout, readOnly: true },
      { name: 'work', mountPath: PATHS.work },
      ...(pushSecret ? [{ name: 'credential', mountPath: PATHS.credential, readOnly: true }] : []),
      ...caMount(settings, PATHS.ca),
    ],
  };
}

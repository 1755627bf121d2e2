import type { BuildSettings } from './settings.ts';

/**
 * Mount points of a build pod. In the container that runs the Dockerfile everything lies below /kaniko: Kaniko leaves that directory
 * out of every snapshot, while a mount at /workspace or /build would swallow what a Dockerfile writes there.
 */
export const PATHS = {
  /** Build container. */
  context: '/kaniko/skill/context',
  dockerfileDir: '/kaniko/skill/dockerfile',
  imageDir: '/kaniko/skill/image',
  builderCA: '/kaniko/skill/ca',
  /** The two containers of this product. */
  urls: '/run/skill-build/urls',
  credential: '/run/skill-build/credential',
  ca: '/run/skill-build/ca',
  layout: '/run/skill-build/image',
  work: '/work',
} as const;

/** Name of the Dockerfile in its own directory, outside of the context. */
export const DOCKERFILE = 'Dockerfile';
/** Name of the OCI layout within the volume that carries it. */
export const LAYOUT = 'layout';
/** Name of the CA bundle in its volume, as skopeo wants a directory of certificates. */
export const CA_FILE = 'ca.crt';

/** Kaniko's environment; releases that do not know a variable ignore it. */
export const BUILDER_ENVIRONMENT: Readonly<Record<string, string>> = {
  // A .dockerignore is about the context alone, as in Docker; without this it also hides files from COPY --from.
  FF_KANIKO_SCOPED_DOCKERIGNORE: 'true',
};

/** The part of Kaniko's arguments that shapes the image. */
export function imageArguments({ architecture }: Pick<BuildSettings, 'architecture'>): string[] {
  return [
    `--custom-platform=linux/${architecture}`,
    // `time` would miss files that a RUN changes without touching their time; `full` reads every file again after every step.
    '--snapshot-mode=redo',
    // Where the kubelet mounts the file of that name (kind does), deleting it fails the build.
    '--ignore-path=/product_uuid',
  ];
}

function sourceArguments(settings: BuildSettings): string[] {
  const { mirrors = [], map = {}, strict, insecure = [] } = settings.baseImages ?? {};
  const plain = new Set(insecure);
  if (settings.registry.insecure) plain.add(settings.registry.host);
  const asked = [settings.registry.host, ...mirrors, ...Object.values(map)].map((host) => host.split('/')[0] ?? host);
  const trusted = settings.caBundle ? [...new Set(asked)].filter((host) => !plain.has(host)) : [];
  return [
    ...mirrors.map((host) => `--registry-mirror=${host}`),
    ...Object.entries(map).map(([from, to]) => `--registry-map=${from}=${to}`),
    ...(strict ? ['--skip-default-registry-fallback'] : []),
    ...[...plain].map((host) => `--insecure-registry=${host}`),
    ...trusted.map((host) => `--registry-certificate=${host}=${PATHS.builderCA}/${CA_FILE}`),
  ];
}

/**
 * Kaniko's arguments, understood by the default builder and by the original 1.24 alike.
 * The image goes to an OCI layout on a volume: the container that runs the author's commands never pushes and holds no credential.
 */
export function builderArguments(settings: BuildSettings): string[] {
  return [
    `--context=dir://${PATHS.context}`,
    `--dockerfile=${PATHS.dockerfileDir}/${DOCKERFILE}`,
    '--no-push',
    '--no-push-cache',
    `--oci-layout-path=${PATHS.imageDir}/${LAYOUT}`,
    ...imageArguments(settings),
    ...sourceArguments(settings),
    '--image-download-retry=3',
    '--image-fs-extract-retry=1',
    // Without a service account token Kaniko does not always notice that it runs in a container.
    '--force',
    '--log-format=text',
    '--verbosity=info',
  ];
}

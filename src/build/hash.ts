import { createHash } from 'node:crypto';
import { BUILDER_ENVIRONMENT, imageArguments } from './arguments.ts';
import type { BuildSettings } from './settings.ts';

/** What a build starts from. */
export interface BuildContent {
  /** sha256 of package.tar, 64 hex digits: the build context, which never holds the private files. */
  tarSHA256: string;
  /** sha256 of the Dockerfile, 64 hex digits. */
  dockerfileSHA256: string;
  /** Value of the annotation `rebuild` that asked for this build; absent: none did. */
  rebuild?: string | undefined;
}

/**
 * The identity of a build, 64 hex digits: two builds of the same hash may stand for each other.
 * Covers context, Dockerfile, builder image, platform, the arguments that shape the image, and the rebuild value. Mirrors, proxies,
 * resources and deadlines do not count: they change how an image is built, not what it is. Source: design, "Outside the cluster: names".
 */
export function inputHash(
  content: BuildContent,
  settings: Pick<BuildSettings, 'builderImage' | 'architecture'>,
): string {
  const fields = [
    'build-input/v1',
    content.tarSHA256,
    content.dockerfileSHA256,
    settings.builderImage,
    imageArguments(settings),
    BUILDER_ENVIRONMENT,
    content.rebuild ?? null,
  ];
  return createHash('sha256').update(JSON.stringify(fields)).digest('hex');
}

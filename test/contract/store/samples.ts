import type { Frontmatter, PackageFile } from '../../../src/protocol/types.ts';
import { buildPackage } from '../../../src/store/package.ts';
import type { BuiltPackage } from '../../../src/store/package.types.ts';

/** The frontmatter of the sample packages, with every optional field. */
export const frontmatter: Frontmatter = {
  name: 'pdf',
  description: 'Reads PDF files.',
  license: 'Apache-2.0',
  compatibility: 'any',
  metadata: 'team: docs',
  allowedTools: ['Read', 'Bash'],
  runtime: 'cubesandbox',
  source: 'name: pdf\ndescription: Reads PDF files.\n',
};

/** One file of a package. */
export const packageFile = (
  path: string,
  content: string | Uint8Array,
  mode: PackageFile['mode'] = '0644',
): PackageFile => ({ path, mode, content: Buffer.from(content) });

/** A prompt-only package whose content, and so whose digest, depends on `seed`. */
export const promptOnly = (seed: string): BuiltPackage =>
  buildPackage({
    frontmatter: { ...frontmatter, runtime: 'prompt-only' },
    files: [packageFile('SKILL.md', `seed ${seed}\n`), packageFile('references/a.md', 'a\n')],
  });

/** The same with a `.skillenv` and a Dockerfile. */
export const withPrivateParts = (seed: string): BuiltPackage =>
  buildPackage({
    frontmatter,
    files: [
      packageFile('SKILL.md', `seed ${seed}\n`),
      packageFile('.skillenv', 'TOKEN=\n', '0755'),
      packageFile('.cubesandbox.dockerfile', 'FROM scratch\n'),
      packageFile('scripts/run.sh', '#!/bin/sh\n', '0755'),
    ],
  });

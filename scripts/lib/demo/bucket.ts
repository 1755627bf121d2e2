import { createHash } from 'node:crypto';
import type { Manifest } from '../../../src/store/package.types.ts';
import { listObjects, readObject } from '../../../test/support/s3.ts';
import { size } from './screen.ts';
import type { ShownVersion, SkillView } from './skills.ts';
import { type Hands, NAMESPACE, type Stage } from './stage.ts';
import { table } from './table.ts';

/** Packages that are listed and checked; a large marketplace has more. */
const SHOWN = 60;

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

/** One object of the bucket. */
interface Stored {
  key: string;
  size: number;
}

function find(objects: readonly Stored[], end: string): Stored {
  const found = objects.find(({ key }) => key.endsWith(end));
  if (!found) throw new Error(`the bucket has no object …/${end}`);
  return found;
}

/** Follows the sums as a reader does: status → manifest → archive. Throws when one does not fit. */
async function verify(operator: Hands, objects: readonly Stored[], version: ShownVersion): Promise<void> {
  const { info, bucket } = operator;
  const base = `packages/${NAMESPACE}/${version.digest}`;
  const manifest = await readObject(info.s3, bucket, find(objects, `${base}/manifest.json`).key);
  if (sha256(manifest) !== version.manifestSHA256)
    throw new Error(`${base}/manifest.json does not have the SHA-256 that the Skill's status names`);
  const { tar } = JSON.parse(manifest.toString('utf8')) as Manifest;
  const archive = await readObject(info.s3, bucket, find(objects, `${base}/package.tar`).key);
  if (sha256(archive) !== tar.sha256)
    throw new Error(`${base}/package.tar does not have the SHA-256 that its manifest names`);
}

/** Lists what lies in the bucket for these Skills and checks every sum. */
export async function showBucket(stage: Stage, operator: Hands, views: readonly SkillView[]): Promise<string> {
  const { screen } = stage;
  const objects = await listObjects(operator.info.s3, operator.bucket);
  const stored = views.filter((view) => view.stored !== undefined);
  if (stored.length === 0) return 'the bucket is empty: no skill of this marketplace is valid';
  const rows = [];
  for (const { name, stored: version } of stored.slice(0, SHOWN)) {
    if (!version) continue;
    await stage.unlessStopped(verify(operator, objects, version));
    const bytes = (file: string) => size(find(objects, `packages/${NAMESPACE}/${version.digest}/${file}`).size);
    const parts = objects
      .filter(({ key }) => key.includes(`private/${NAMESPACE}/${version.digest}/`))
      .map(({ key }) => key.split('/').at(-1));
    rows.push([
      { text: name },
      { text: `${version.digest.slice(0, 12)}…` },
      { text: bytes('package.tar'), right: true },
      { text: bytes('manifest.json'), right: true },
      { text: parts.join(' ') },
    ]);
  }
  const root = find(objects, '/manifest.json').key.split('/packages/')[0];
  const header = ['SKILL', 'DIGEST', 'PACKAGE.TAR', 'MANIFEST', 'PRIVATE PARTS'];
  screen.tell(`Packages are named by their content: s3://${operator.bucket}/${root}/packages/${NAMESPACE}/<digest>/`);
  screen.say('', ...table(header, rows, screen.width, screen.paint), '');
  const rest = stored.length > SHOWN ? ` (the first ${SHOWN} of ${stored.length})` : '';
  return `${rows.length} packages in ${objects.length} objects; every SHA-256 fits, from the status down to the archive${rest}`;
}

/** `make chart`: lints the Helm chart and packages it into dist/, with the Helm that the tests use (compiled once per machine). */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { execOk } from '../test/cluster/exec.ts';
import { ensureHelm } from '../test/cluster/helm-binary.ts';

const ROOT = join(import.meta.dirname, '..');
const CHART = join(ROOT, 'charts', 'skill-operator');
const DIST = join(ROOT, 'dist');
/** The least that has to be set. */
const VALUES =
  'config.store.endpoint=https://minio.example.com,config.store.bucket=skills,store.existingSecret=skill-store';

const signal = AbortSignal.timeout(45 * 60_000);
const helm = await ensureHelm({ say: (line) => console.log(line) }, signal);
mkdirSync(DIST, { recursive: true });
console.log((await execOk(helm, ['lint', '--strict', '--set', VALUES, CHART], { signal })).trim());
console.log((await execOk(helm, ['package', '--destination', DIST, CHART], { signal })).trim());

/**
 * `make sbom`: writes dist/sbom.cdx.json, a CycloneDX bill of the npm packages that the programs are bundled from, out of package-lock.json, offline.
 * Packages for development and tests are left out. Fails when a package of the lock file is missing in what npm tells.
 */
import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { type Bom, billOf, type Lock } from './lib/sbom.ts';

const ROOT = join(import.meta.dirname, '..');
const TARGET = join(ROOT, 'dist', 'sbom.cdx.json');
const TIMEOUT_MS = 60_000;
const ARGUMENTS = ['sbom', '--package-lock-only', '--offline', '--sbom-format=cyclonedx', '--sbom-type=application'];

const read = async (name: string): Promise<unknown> => JSON.parse(await readFile(join(ROOT, name), 'utf8'));

const { stdout } = await promisify(execFile)('npm', ARGUMENTS, { cwd: ROOT, timeout: TIMEOUT_MS, maxBuffer: 2 ** 26 });
const { name } = (await read('package.json')) as { name: string };
const bom = billOf(JSON.parse(stdout) as Bom, name, (await read('package-lock.json')) as Lock);
await mkdir(join(ROOT, 'dist'), { recursive: true });
await writeFile(TARGET, `${JSON.stringify(bom, null, 2)}\n`);
console.log(`${relative(ROOT, TARGET)}: ${bom.components.length} packages, CycloneDX ${bom.specVersion}`);

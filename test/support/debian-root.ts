import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { execOk } from '../cluster/exec.ts';
import { ensurePrograms } from '../cluster/packages.ts';

const LEFT_OUT = ['/usr/share/doc/*', '/usr/share/man/*', '/usr/share/locale/*', '/usr/share/info/*'];
const SOURCES_FILE = '/etc/apt/sources.list';
const SOURCES_FOLDER = '/etc/apt/sources.list.d';
const INSTALL_MS = 15 * 60_000;

const textOf = (file: string): string => (existsSync(file) ? readFileSync(file, 'utf8') : '');

/** The apt sources of this machine that serve its own release; other publishers' sources may lack their keys. */
function sources(codename: string): string[] {
  const more = existsSync(SOURCES_FOLDER) ? readdirSync(SOURCES_FOLDER).map((name) => join(SOURCES_FOLDER, name)) : [];
  const release = new RegExp(`^(?:Suites:.*|deb .*)\\b${codename}\\b`, 'm');
  return [SOURCES_FILE, ...more].filter((file) => /\.(?:list|sources)$/.test(file) && release.test(textOf(file)));
}

/** Writes a tar of a minimal root file system of this machine's own Debian or Ubuntu release with these packages; needs root. */
export async function debianRoot(
  target: string,
  packages: readonly string[],
  say: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  await ensurePrograms([{ probe: ['mmdebstrap', '--version'], debianPackage: 'mmdebstrap' }], say, signal);
  const codename = /^VERSION_CODENAME=(\w+)$/m.exec(textOf('/etc/os-release'))?.[1];
  if (codename === undefined) throw new Error('This is no Debian or Ubuntu: /etc/os-release names no release.');
  const options = [
    '--quiet',
    '--variant=minbase',
    '--mode=root',
    '--format=tar',
    `--include=${packages.join(',')}`,
    ...LEFT_OUT.map((path) => `--dpkgopt=path-exclude=${path}`),
  ];
  await execOk('mmdebstrap', [...options, codename, target, ...sources(codename)], { signal, timeoutMs: INSTALL_MS });
}

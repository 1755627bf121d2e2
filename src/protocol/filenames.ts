import type { Findings } from './findings.ts';
import { DOCKERFILES, SKILL_MD, SKILLENV } from './names.ts';
import { shellWord, show } from './text.ts';

const OFFICIAL = [SKILL_MD, SKILLENV, DOCKERFILES.cubesandbox, DOCKERFILES.e2b];
const plain = (name: string): string => name.toLowerCase().replace(/^\./, '');
const BY_PLAIN = new Map(OFFICIAL.map((name) => [plain(name), name]));
/** `.env`, `.envrc`, `.env.local`, `prod.env`; samples are meant to be published. */
const ENV_FILE = /^(?:\.envrc|.*\.env|\.env\..+)$/i;
const ENV_SAMPLE = /\.(?:example|sample|template|dist|tpl)$/i;

/** The official name that a root file was probably meant to have, or undefined when it has it or is another file. */
export function officialName(name: string): string | undefined {
  const official = BY_PLAIN.get(plain(name));
  return official === name ? undefined : official;
}

/** Notes file names that have no effect though they look official, and files that usually hold secrets. */
export function checkFileNames(paths: Iterable<string>, out: Findings): void {
  for (const path of paths) {
    const name = path.slice(path.lastIndexOf('/') + 1);
    const official = name === path ? officialName(name) : undefined;
    if (official) {
      const message = `${show(name)} is not ${official} and has no effect`;
      out.add('FileNameWrongCase', { path }, message, `rename it: git mv -- ${shellWord(name)} ${official}`);
    }
    if (ENV_FILE.test(name) && !ENV_SAMPLE.test(name)) {
      const message = `${show(path)} becomes part of the package, and files of this name usually hold secrets`;
      out.add(
        'EnvFileIncluded',
        { path },
        message,
        `if it does: git rm -- ${shellWord(path)}, and declare the keys in .skillenv`,
      );
    }
  }
}

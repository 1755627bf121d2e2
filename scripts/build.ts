/**
 * Bundles the programs into dist/: the operator, its worker, the programs of a build pod and skillctl (also as kubectl-skills), each one file that runs without node_modules.
 * Usage: node scripts/build.ts [--outdir dist] [name…]. Prints size and time of each; fails on the first error of the bundler.
 */
import { chmod, copyFile, mkdir, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));

interface Program {
  name: string;
  entry: string;
  /** Source that is bundled in place of the entry itself. */
  source?: string;
  /** Gets a `#!` line and the executable bit. */
  executable?: boolean;
  /** A second name for the same file. */
  alias?: string;
}

const PROGRAMS: Program[] = [
  { name: 'main', entry: 'src/main.ts' },
  {
    name: 'worker',
    entry: 'src/worker.ts',
    // The pool starts every thread from its own bootstrap, which it looks for beside its bundle: both are this one file.
    source: "import './node_modules/piscina/dist/worker.js'; export * from './src/worker.ts';",
  },
  { name: 'jobs', entry: 'src/jobs/main.ts' },
  // kubectl finds its plugin `skills` by this name on PATH; Node takes the file for a module by its syntax.
  { name: 'skillctl', entry: 'src/cli/skillctl.ts', executable: true, alias: 'kubectl-skills' },
];

/** CommonJS packages inside an ES module bundle still call `require` for Node's own modules. */
const REQUIRE =
  "import { createRequire as bundleRequire } from 'node:module';const require = bundleRequire(import.meta.url);const __dirname = import.meta.dirname;";

async function bundle(program: Program, outdir: string): Promise<void> {
  const started = performance.now();
  const outfile = join(outdir, `${program.name}.js`);
  await build({
    absWorkingDir: root,
    ...(program.source
      ? { stdin: { contents: program.source, resolveDir: root, sourcefile: `${program.name}-entry.ts`, loader: 'ts' } }
      : { entryPoints: [program.entry] }),
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node24',
    legalComments: 'linked',
    // The engine keeps the text in memory, at two bytes a character if one comment of a library is not Latin: 20 MiB of the operator.
    // Names stay, and lines stay short, so that a stack still says where it was.
    minifyWhitespace: true,
    minifySyntax: true,
    lineLimit: 160,
    // Native and optional: thread priorities, which the pool does without.
    external: ['@napi-rs/nice'],
    logLevel: 'warning',
    banner: { js: program.executable ? `#!/usr/bin/env node\n${REQUIRE}` : REQUIRE },
  });
  if (program.executable) await chmod(outfile, 0o755);
  if (program.alias) await copyFile(outfile, join(outdir, program.alias));
  const { size } = await stat(outfile);
  const kib = (size / 1024).toFixed(0).padStart(6);
  const ms = (performance.now() - started).toFixed(0).padStart(5);
  console.log(`${program.name}.js`.padEnd(12), `${kib} KiB`, `${ms} ms`);
}

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );

async function main(): Promise<void> {
  const { values, positionals: wanted } = parseArgs({
    allowPositionals: true,
    options: { outdir: { type: 'string', default: join(root, 'dist') } },
  });
  const unknown = wanted.filter((name) => !PROGRAMS.some((program) => program.name === name));
  if (unknown.length > 0) {
    throw new Error(`unknown program ${unknown.join(', ')}; use ${PROGRAMS.map((one) => one.name).join(', ')}`);
  }
  const outdir = resolve(values.outdir);
  await mkdir(outdir, { recursive: true });
  for (const program of PROGRAMS) {
    if (wanted.length > 0 && !wanted.includes(program.name)) continue;
    if (await exists(join(root, program.entry))) await bundle(program, outdir);
    else console.log(`${program.name}.js`.padEnd(12), `skipped: there is no ${program.entry}`);
  }
}

await main();

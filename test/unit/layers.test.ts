import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const IMPORTS = 'lint/style/noRestrictedImports';
const ENVIRONMENT = 'lint/style/noProcessEnv';

/** A file and what it may not do there. */
const FORBIDDEN: [file: string, code: string, rule: string][] = [
  ['src/base/a.ts', `import '../protocol/x.ts';`, IMPORTS],
  ['src/base/b.ts', `import 'undici';`, IMPORTS],
  ['src/protocol/a.ts', `import 'node:fs';`, IMPORTS],
  ['src/protocol/b.ts', `import 'undici';`, IMPORTS],
  ['src/protocol/c.ts', `import '../store/port.ts';`, IMPORTS],
  ['src/api/a.ts', `import '../kube/types.ts';`, IMPORTS],
  ['src/lifecycle/a.ts', `import 'zod';`, IMPORTS],
  ['src/lifecycle/b.ts', `import '../store/port.ts';`, IMPORTS],
  ['src/kube/a.ts', `import '../api/skill.ts';`, IMPORTS],
  ['src/kube/b.ts', `import 'minio';`, IMPORTS],
  ['src/marketplace/a.ts', `import '../store/port.ts';`, IMPORTS],
  ['src/marketplace/b.ts', `import '@kubernetes/client-node';`, IMPORTS],
  ['src/store/a.ts', `import '../kube/types.ts';`, IMPORTS],
  ['src/store/b.ts', `import 'simple-git';`, IMPORTS],
  ['src/build/a.ts', `import '../store/port.ts';`, IMPORTS],
  ['src/engine/a.ts', `import '../api/skill.ts';`, IMPORTS],
  ['src/controllers/skill/a.ts', `import 'minio';`, IMPORTS],
  ['src/controllers/skill/b.ts', `import '../../store/s3.ts';`, IMPORTS],
  ['src/controllers/skill/c.ts', `import '../../main.ts';`, IMPORTS],
  ['src/controllers/skill/d.ts', `import '../../cli/skillctl.ts';`, IMPORTS],
  ['src/jobs/a.ts', `import '../kube/types.ts';`, IMPORTS],
  ['src/gateway/a.ts', `import '../controllers/skill/index.ts';`, IMPORTS],
  ['src/webhook/a.ts', `import '../controllers/skill/index.ts';`, IMPORTS],
  ['src/webhook/b.ts', `import 'undici';`, IMPORTS],
  ['src/controllers/skill/e.ts', `import '../../webhook/receiver.ts';`, IMPORTS],
  ['src/cli/a.ts', `import '../controllers/skill/index.ts';`, IMPORTS],
  ['src/kube/env.ts', 'export const home = process.env.HOME;', ENVIRONMENT],
  ['src/controllers/skill/env.ts', 'export const home = process.env.HOME;', ENVIRONMENT],
];

/** What the table of rooms allows, and so must stay quiet. */
const ALLOWED: [file: string, code: string][] = [
  ['src/protocol/ok.ts', `import 'yaml';\nimport '../base/errors.ts';`],
  ['src/api/ok.ts', `import 'zod';\nimport '../protocol/types.ts';`],
  ['src/kube/ok.ts', `import '@kubernetes/client-node';\nimport 'undici';`],
  ['src/marketplace/ok.ts', `import 'simple-git';\nimport 'undici';\nimport '../protocol/types.ts';`],
  ['src/store/ok.ts', `import 'minio';\nimport 'tar-stream';`],
  ['src/controllers/skill/ok.ts', `import '../../kube/types.ts';\nimport '../../store/port.ts';`],
  ['src/webhook/ok.ts', `import '../kube/rest.ts';\nimport '../api/labels.ts';\nimport 'node:http';`],
  ['src/config.ts', 'export const home = process.env.HOME;'],
  ['src/main.ts', `import './controllers/skill/index.ts';\nimport './store/s3.ts';`],
];

interface BiomeReport {
  diagnostics: { category: string; location: { path: string | { file: string } } }[];
}

describe('the layer rules of biome.json', () => {
  let dir = '';
  const found = new Map<string, Set<string>>();

  beforeAll(() => {
    dir = mkdtempSync(join(tmpdir(), 'skill-operator-layers-'));
    copyFileSync(join(ROOT, 'biome.json'), join(dir, 'biome.json'));
    for (const [file, code] of [...FORBIDDEN, ...ALLOWED]) {
      mkdirSync(dirname(join(dir, file)), { recursive: true });
      writeFileSync(join(dir, file), `${code}\n`);
    }
    const biome = join(ROOT, 'node_modules', '@biomejs', 'biome', 'bin', 'biome');
    const args = [biome, 'lint', '--reporter=json', '--max-diagnostics=none', 'src'];
    const { stdout } = spawnSync(process.execPath, args, { cwd: dir, encoding: 'utf8', timeout: 60_000 });
    for (const { category, location } of (JSON.parse(stdout) as BiomeReport).diagnostics) {
      const path = typeof location.path === 'string' ? location.path : location.path.file;
      found.set(path, (found.get(path) ?? new Set()).add(category));
    }
  }, 90_000);
  afterAll(() => rmSync(dir, { recursive: true, force: true }));

  test.each(FORBIDDEN)('refuse in %s: %s', (file, _code, rule) => {
    expect([...(found.get(file) ?? [])]).toContain(rule);
  });

  test.each(ALLOWED)('let pass in %s: %s', (file) => {
    const complaints = [...(found.get(file) ?? [])].filter((rule) => rule === IMPORTS || rule === ENVIRONMENT);
    expect(complaints).toEqual([]);
  });
});

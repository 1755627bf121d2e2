/** `make kind`: like `make cluster`, with a kind cluster for the API where a Docker engine answers; says so where none does. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { exec, execOk, isInstalled } from './exec.ts';
import { serve } from './serve.ts';

const NAME = 'skill-operator';
const CREATE_TIMEOUT_MS = 10 * 60_000;
const { signal } = new AbortController();

/** Why kind cannot run here, and what to do; undefined when it can. */
async function obstacle(): Promise<string | undefined> {
  const otherWay = 'Start Docker, or use `make cluster`, which needs none.';
  if (!(await isInstalled('docker', ['--version'], signal))) return `Docker is not installed. ${otherWay}`;
  const { code } = await exec('docker', ['version', '--format', '{{.Server.Version}}'], { signal, timeoutMs: 15_000 });
  if (code !== 0) return `No Docker engine answers. ${otherWay}`;
  if (!(await isInstalled('kind', ['version'], signal))) {
    return 'A Docker engine answers, but the program kind is not installed. Install kind, or use `make cluster`.';
  }
  return undefined;
}

async function up(): Promise<void> {
  const existing = (await execOk('kind', ['get', 'clusters'], { signal })).split('\n');
  if (!existing.includes(NAME)) {
    console.log(`Creating the kind cluster ${NAME}; the first time this takes a few minutes.`);
    const create = ['create', 'cluster', '--name', NAME, '--wait', '120s'];
    await execOk('kind', create, { signal, timeoutMs: CREATE_TIMEOUT_MS });
  }
  const dir = mkdtempSync(join(tmpdir(), 'skill-operator-kind-'));
  try {
    const kubeconfig = join(dir, 'kubeconfig');
    writeFileSync(kubeconfig, await execOk('kind', ['get', 'kubeconfig', '--name', NAME], { signal }), { mode: 0o600 });
    await serve(kubeconfig);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
  console.log(`The kind cluster stays for the next time; \`kind delete cluster --name ${NAME}\` removes it.`);
}

const why = await obstacle();
if (why === undefined) await up();
else {
  console.error(why);
  process.exitCode = 1;
}

import { exec } from '../cluster/exec.ts';
import { ensureGoProgram } from '../cluster/go-program.ts';

/** What the kstatus library itself (sigs.k8s.io/cli-utils) says of objects: `Current`, `InProgress`, `Failed`, … Compiled once per machine. */
export async function kstatusOf(objects: readonly object[], signal: AbortSignal): Promise<string[]> {
  const program = await ensureGoProgram(
    {
      name: 'kstatus',
      folder: 'kstatus',
      files: ['go.mod', 'go.sum', 'main.go'],
      package: '.',
      flags: ['-buildvcs=false'],
      what: 'the kstatus library',
      takes: 'about a minute',
      waysAround: 'Install Go 1.26 or newer.',
    },
    { say: (line) => process.stderr.write(`[kstatus] ${line}\n`) },
    signal,
  );
  const { code, stdout, stderr } = await exec(program, [], { signal, input: JSON.stringify(objects) });
  if (code !== 0) throw new Error(stderr.trim());
  return JSON.parse(stdout) as string[];
}

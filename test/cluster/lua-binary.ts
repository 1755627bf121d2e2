import type { Host } from './component.ts';
import { ensureGoProgram } from './go-program.ts';

/** Path of the Lua interpreter that Argo CD embeds (gopher-lua), compiled once per machine. */
export async function ensureLua(host: Pick<Host, 'say'>, signal: AbortSignal): Promise<string> {
  return await ensureGoProgram(
    {
      name: 'glua',
      folder: 'lua',
      files: ['go.mod', 'go.sum'],
      package: 'github.com/yuin/gopher-lua/cmd/glua',
      flags: ['-buildvcs=false'],
      what: 'the Lua interpreter of Argo CD',
      takes: 'some seconds',
      waysAround: 'Install Go 1.26 or newer.',
    },
    host,
    signal,
  );
}

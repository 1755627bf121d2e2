import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execOk } from '../cluster/exec.ts';
import { ensureLua } from '../cluster/lua-binary.ts';

/** A JSON value as a Lua expression. */
function literal(value: unknown): string {
  if (value === null || value === undefined) return 'nil';
  if (typeof value === 'string')
    return `"${[...Buffer.from(value)].map((byte) => `\\${String(byte).padStart(3, '0')}`).join('')}"`;
  if (Array.isArray(value)) return `{${value.map(literal).join(', ')}}`;
  if (typeof value === 'object')
    return `{${Object.entries(value)
      .map(([key, one]) => `[${literal(key)}] = ${literal(one)}`)
      .join(', ')}}`;
  return String(value);
}

/** Writes a table as JSON: with a first element it is a list, else an object with sorted keys. */
const PRINT = `
local function quoted(text)
  return '"' .. text:gsub('[%c"\\\\]', function(c) return string.format("\\\\u%04x", c:byte()) end) .. '"'
end
local function json(value)
  if type(value) == "string" then return quoted(value) end
  if type(value) ~= "table" then return tostring(value) end
  local parts = {}
  if #value > 0 then
    for _, one in ipairs(value) do parts[#parts + 1] = json(one) end
    return "[" .. table.concat(parts, ",") .. "]"
  end
  for key, one in pairs(value) do parts[#parts + 1] = quoted(key) .. ":" .. json(one) end
  table.sort(parts)
  return "{" .. table.concat(parts, ",") .. "}"
end
print(json(result))
`;

/** Runs a script of Argo CD's kind: it gets the object as the global \`obj\`, and what it returns comes back as JSON. */
export async function runArgoScript(script: string, obj: object, signal: AbortSignal): Promise<unknown> {
  const lua = await ensureLua({ say: (line) => process.stderr.write(`[lua] ${line}\n`) }, signal);
  const dir = await mkdtemp(join(tmpdir(), 'skill-operator-lua-'));
  try {
    const file = join(dir, 'script.lua');
    await writeFile(file, `obj = ${literal(obj)}\nlocal result = (function()\n${script}\nend)()\n${PRINT}`);
    const stdout = await execOk(lua, [file], { signal });
    return JSON.parse(stdout);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

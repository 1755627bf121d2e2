// Runs below /skill by `npx tsx` and by `tsx`: a script as authors write it, with types and an ES module import.
import { z } from 'zod';

const Reply = z.object({ ok: z.boolean(), args: z.array(z.string()) });
const reply: z.infer<typeof Reply> = { ok: true, args: process.argv.slice(2) };
console.log(JSON.stringify(Reply.parse(reply)));

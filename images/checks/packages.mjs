// Runs below /skill in a Node runtime: imports every promised package as an ES module and by require; prints what answered as JSON.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import axios from 'axios';
import dayjs from 'dayjs';
import { z } from 'zod';

const [major] = process.versions.node.split('.');
assert(Number(major) >= 22, process.version);
assert.equal(axios.getUri({ url: 'https://example.com', params: { a: 'b' } }), 'https://example.com?a=b');
assert.equal(dayjs('2026-01-31').add(1, 'month').format('YYYY-MM-DD'), '2026-02-28');
assert.deepEqual(z.object({ total: z.coerce.number() }).parse({ total: '3' }), { total: 3 });

const require = createRequire(import.meta.url);
for (const name of ['axios', 'dayjs', 'tsx', 'zod']) require.resolve(name);
assert.equal(typeof require('zod').z, 'object');
console.log(JSON.stringify({ node: process.versions.node, packages: ['axios', 'dayjs', 'tsx', 'zod'] }));

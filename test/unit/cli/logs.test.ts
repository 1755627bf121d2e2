import { expect, test } from 'vitest';
import { linesOf, tame } from '../../../src/cli/logs/lines.ts';
import { endOf, type Pod, stageOf } from '../../../src/cli/logs/pod.ts';

async function lines(...chunks: (string | Uint8Array)[]): Promise<string[]> {
  async function* bytes() {
    for (const chunk of chunks) yield typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
  }
  const all: string[] = [];
  for await (const line of linesOf(bytes())) all.push(line);
  return all;
}

test('lines come whole, whatever the chunks are, and the last needs no line end', async () => {
  expect(await lines('a\nb', 'c\n\nd')).toEqual(['a', 'bc', '', 'd']);
  const [euro] = [Buffer.from('€')];
  expect(await lines(euro.subarray(0, 1), euro.subarray(1))).toEqual(['€']);
  expect(await lines()).toEqual([]);
  expect((await lines('x'.repeat(40_000))).join('')).toBe('x'.repeat(40_000));
});

test.each([
  ['\u001b[31mred\u001b[0m', 'red'],
  ['10 %\r50 %\r100 %\r', '100 %'],
  ['a\tb', 'a  b'],
  ['\u001b]0;title\u0007text', 'text'],
  ['left\u202eright', 'left\\u{202e}right'],
  ['https://user:pw@example.com', 'https://***@example.com'],
])('%j is shown as %j', (line, shown) => {
  expect(tame(line)).toBe(shown);
});

const pod = (phase: string, ...states: [string, object][]): Pod => ({
  metadata: { name: 'p' },
  status: {
    phase,
    initContainerStatuses: states.filter(([name]) => name !== 'push').map(([name, state]) => ({ name, state })),
    containerStatuses: states.filter(([name]) => name === 'push').map(([name, state]) => ({ name, state })),
  },
});
const ended = (exitCode: number, reason = 'Error') => ({ terminated: { exitCode, reason } });

test('what each step is doing, and how the pod ends', () => {
  const pulling = pod('Pending', ['fetch', { waiting: { reason: 'ImagePullBackOff' } }]);
  expect([stageOf(pulling, 'fetch'), stageOf(pulling, 'push'), endOf(pulling)]).toEqual([
    { kind: 'waiting', why: 'ImagePullBackOff' },
    { kind: 'waiting', why: 'Pending' },
    undefined,
  ]);
  const running = pod('Pending', ['fetch', ended(0)], ['build', { running: {} }]);
  expect([stageOf(running, 'fetch').kind, stageOf(running, 'build').kind, endOf(running)]).toEqual([
    'ended',
    'running',
    undefined,
  ]);
  const broken = pod('Failed', ['fetch', ended(0)], ['build', ended(1, 'OOMKilled')]);
  expect([stageOf(broken, 'push').kind, endOf(broken)]).toEqual([
    'never',
    { ok: false, text: 'build ended with 1 (OOMKilled)' },
  ]);
  const done = pod('Succeeded', ['fetch', ended(0)], ['build', ended(0)], ['push', ended(0)]);
  expect(endOf(done)).toEqual({ ok: true, text: 'the image is built and pushed' });
  expect(endOf({ metadata: { name: 'p' }, status: { phase: 'Failed', reason: 'Evicted' } })).toMatchObject({
    ok: false,
    text: 'the pod failed: Evicted',
  });
});

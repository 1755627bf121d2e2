import { expect, test } from 'vitest';
import { type Look, waitFor } from '../../../src/cli/cluster/wait.ts';
import { KubeError } from '../../../src/kube/errors.ts';

/** Runs `waitFor` over these looks, the last of them for ever, on a clock that does not wait. */
async function waited(
  looks: (Look<string> | Error)[],
  live = false,
): Promise<{ err: string; result: unknown; slept: number }> {
  let now = 0;
  let at = 0;
  const parts: string[] = [];
  const io = { cwd: '/', colors: false, live, out: () => {}, err: (text: string) => void parts.push(text) };
  const clock = {
    now: () => now,
    monotonic: () => now,
    after: () => () => undefined,
    sleep: async (ms: number) => {
      now += ms;
    },
  };
  const look = async () => {
    const next = looks[Math.min(at++, looks.length - 1)];
    if (next instanceof Error) throw next;
    return next as Look<string>;
  };
  const { signal } = new AbortController();
  const result = await waitFor(look, { io, clock, timeoutMs: 60_000, what: 'the pass' }, signal).catch(String);
  return { err: parts.join(''), result, slept: now };
}

const going = (text: string, answered = true): Look<string> => ({ done: false, text, answered });
const done: Look<string> = { done: true, value: 'ready' };

test('says each text once in a pipe, and nothing stays on a terminal', async () => {
  expect(await waited([going('a'), going('a'), going('b\u001b[2J'), done])).toMatchObject({
    err: 'a\nb\\u{1b}[2J\n',
    result: 'ready',
  });
  const { err } = await waited([going('a'), going('b'), done], true);
  const clear = '\r\u001b[K';
  expect(err).toBe(`${clear}a 0s${clear}b 0s${clear}`);
});

test('time is up: what was waited for, the last text, and what to try when nobody answered', async () => {
  const { result, slept, err } = await waited([going('no answer', false)]);
  expect(result).toBe(
    'TimeIsUp: the pass did not end within 60 s: no answer; skillctl doctor tells whether the operator runs',
  );
  expect(slept).toBe(60_000);
  expect(err).toBe('no answer\nno answer; skillctl doctor tells whether the operator runs\n');
});

test('an API server that does not answer is sat out, a refusal is not', async () => {
  expect(await waited([new KubeError(0, 'Network', 'down'), done])).toMatchObject({ err: 'down\n', result: 'ready' });
  expect(await waited([new KubeError(403, 'Forbidden', 'no right')])).toMatchObject({
    result: 'KubeError: no right',
    slept: 0,
  });
});

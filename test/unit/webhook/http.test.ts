import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { type Clock, systemClock } from '../../../src/base/clock.ts';
import type { Key } from '../../../src/kube/types.ts';
import { type Answer, type Handler, HookServer, type Limits, REFUSED } from '../../../src/webhook/http.ts';
import { FakeClock } from '../kube/fake-clock.ts';

const LIMITS: Limits = { bodyBytes: 64 * 1024, readMs: 60_000, deliveries: 8, connections: 64, refusalMs: 0 };
const OK: Answer = { code: 202, text: 'taken' };

/** Takes every body whose bytes are all `a`, and remembers what happened. */
class Recorder implements Handler {
  readonly bytes = new Map<Key, number>();
  readonly failures: string[] = [];
  readonly opened = Promise.withResolvers<void>();

  async open(key: Key) {
    if (key === 'a/broken') throw new Error('no');
    this.opened.resolve();
    let good = true;
    return {
      update: (chunk: Uint8Array) => {
        this.bytes.set(key, (this.bytes.get(key) ?? 0) + chunk.length);
        good &&= chunk.every((byte) => byte === 0x61);
      },
      holds: () => good,
    };
  }
  async close(_key: Key, _request: IncomingMessage, holds: boolean) {
    return holds ? OK : REFUSED;
  }
  failed(key: Key, _request: IncomingMessage, why: string) {
    this.failures.push(`${key} ${why}`);
  }
}

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

async function serve(limits: Partial<Limits> = {}, clock: Clock = systemClock) {
  const handler = new Recorder();
  const stop = new AbortController();
  const server = new HookServer(handler, { ...LIMITS, ...limits }, clock, stop.signal);
  const port = await server.listen('127.0.0.1:0');
  stops.push(async () => {
    stop.abort();
    await server.close();
  });
  const post = (path: string, body: string, method = 'POST') =>
    fetch(`http://127.0.0.1:${port}${path}`, { method, ...(method === 'POST' ? { body } : {}) });
  return { handler, port, post };
}

/** A connection whose sender does as it likes; `answer` is all that came back when the server closed. */
async function raw(port: number): Promise<{ socket: Socket; answer: Promise<string> }> {
  const socket = connect(port, '127.0.0.1');
  stops.unshift(async () => void socket.destroy());
  let text = '';
  socket.on('data', (data) => {
    text += data.toString('latin1');
  });
  socket.on('error', () => undefined);
  const { promise: answer, resolve } = Promise.withResolvers<string>();
  socket.on('close', () => resolve(text));
  await once(socket, 'connect');
  return { socket, answer };
}

const head = (...lines: string[]) => ['POST /hooks/a/b HTTP/1.1', 'Host: x', ...lines, '', ''].join('\r\n');

describe('HookServer', () => {
  test('feeds whole bodies to the check and gives the answer of the handler', async () => {
    const { handler, post } = await serve();
    const good = await post('/hooks/a/b', 'a'.repeat(40_000));
    expect([good.status, await good.text()]).toEqual([202, 'taken\n']);
    expect(handler.bytes.get('a/b')).toBe(40_000);
    const bad = await post('/hooks/a/b', 'b');
    expect(bad.status).toBe(401);
    expect(bad.headers.get('www-authenticate')).toContain('skill-operator');
    expect((await post('/hooks/a/b', '')).status).toBe(202);
  });
  test.each([
    ['/', 'POST', 404],
    ['/hooks/a', 'POST', 404],
    ['/metrics', 'GET', 404],
    ['/hooks/a/b', 'GET', 405],
    ['/hooks/a/broken', 'POST', 503],
  ])('%s by %s is answered %i', async (path, method, status) => {
    const { post } = await serve();
    expect((await post(path, 'a', method)).status).toBe(status);
  });
  test('refuses a body that says it is too large before reading any of it', async () => {
    const { handler, port } = await serve();
    const { socket, answer } = await raw(port);
    socket.write(head(`Content-Length: ${LIMITS.bodyBytes + 1}`));
    expect(await answer).toMatch(/^HTTP\/1\.1 413 /);
    expect(handler.failures).toEqual(['a/b tooLarge']);
    expect(handler.bytes.size).toBe(0);
  });
  test('cuts a body that goes on for ever', async () => {
    const { handler, port } = await serve();
    const { socket, answer } = await raw(port);
    socket.write(head('Transfer-Encoding: chunked'));
    const chunk = `4000\r\n${'a'.repeat(0x4000)}\r\n`;
    let open = true;
    const text = answer.finally(() => {
      open = false;
    });
    while (open) {
      if (!socket.write(chunk)) await Promise.race([once(socket, 'drain').catch(() => undefined), text]);
    }
    await text;
    expect(handler.failures).toEqual(['a/b tooLarge']);
    expect(handler.bytes.get('a/b')).toBeLessThanOrEqual(LIMITS.bodyBytes);
  });
  test('does not wait for a slow sender', async () => {
    const { handler, port } = await serve({ readMs: 50 });
    const { socket, answer } = await raw(port);
    socket.write(`${head('Content-Length: 10')}aaa`);
    expect(await answer).toMatch(/^HTTP\/1\.1 408 /);
    expect(handler.failures).toEqual(['a/b late']);
  });
  test('a sender that goes away is nobody to answer to', async () => {
    const { handler, port, post } = await serve();
    const { socket, answer } = await raw(port);
    socket.write(`${head('Content-Length: 10')}aaa`);
    await handler.opened.promise;
    socket.resetAndDestroy();
    await answer;
    await expect.poll(() => handler.failures, { timeout: 30_000 }).toEqual(['a/b gone']);
    expect((await post('/hooks/a/b', 'a')).status).toBe(202);
  });
  test('sends no refusal before its time, whatever led to it', async () => {
    const clock = new FakeClock();
    const { port } = await serve({ refusalMs: 100 }, clock);
    const { socket, answer } = await raw(port);
    let answered = false;
    socket.on('data', () => {
      answered = true;
    });
    socket.write(`${head('Content-Length: 1', 'Connection: close')}b`);
    await expect.poll(() => clock.timers, { timeout: 30_000 }).toBe(1);
    await clock.advance(99);
    expect(answered).toBe(false);
    await clock.advance(1);
    expect(await answer).toMatch(/^HTTP\/1\.1 401 /);
  });
  test('reads only so many deliveries at once', async () => {
    const { handler, port, post } = await serve({ deliveries: 1 });
    const { socket, answer } = await raw(port);
    socket.write(`${head('Content-Length: 3', 'Connection: close')}aa`);
    await handler.opened.promise;
    const busy = await post('/hooks/a/b', 'a');
    expect([busy.status, busy.headers.get('retry-after')]).toEqual([503, '5']);
    socket.write('a');
    expect(await answer).toMatch(/^HTTP\/1\.1 202 /);
    expect((await post('/hooks/a/b', 'a')).status).toBe(202);
  });
  test.each([
    'GARBAGE\r\n\r\n',
    `${head('Content-Length: 1', 'Content-Length: 2')}aa`,
    `${head('Content-Length: 1', 'Transfer-Encoding: chunked')}0\r\n\r\n`,
    `${head(`X-Big: ${'a'.repeat(20_000)}`)}`,
    `${head('Transfer-Encoding: chunked')}zz\r\n`,
  ])('survives %j', async (bytes) => {
    const { port, post } = await serve();
    const { socket, answer } = await raw(port);
    socket.write(bytes);
    expect(await answer).toMatch(/^(HTTP\/1\.1 4\d\d .*)?$/s);
    expect((await post('/hooks/a/b', 'a')).status).toBe(202);
  });
});

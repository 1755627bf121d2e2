import { connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { type Health, serveProbes } from '../../src/probes.ts';

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const server of open.splice(0)) await server.close();
});

async function serve(health: Partial<Health> = {}, address = '127.0.0.1:0'): Promise<string> {
  const server = await serveProbes(address, {
    alive: () => true,
    ready: () => true,
    metrics: async () => 'up 1\n',
    ...health,
  });
  open.push(server);
  return `http://127.0.0.1:${server.port}`;
}

const get = async (url: string) => {
  const response = await fetch(url, { signal: AbortSignal.timeout(5_000) });
  return `${response.status} ${(await response.text()).trim()}`;
};

describe('serveProbes', () => {
  it.each([
    ['/healthz', {}, '200 ok'],
    ['/healthz', { alive: () => false }, '503 the event loop or a watch is stuck'],
    ['/readyz', {}, '200 ok'],
    ['/readyz', { ready: () => false }, '503 the Kubernetes API has not answered yet'],
    ['/readyz?verbose', {}, '200 ok'],
    ['/metrics', {}, '200 up 1'],
    ['/metrics', { metrics: () => Promise.reject(new Error('no')) }, '500 cannot be rendered'],
    ['/', {}, '404 try /healthz, /readyz or /metrics'],
  ] as [string, Partial<Health>, string][])('%s with %o answers %s', async (path, health, expected) => {
    expect(await get(`${await serve(health)}${path}`)).toBe(expected);
  });

  it('answers although a probe throws', async () => {
    const url = await serve({
      alive: () => {
        throw new Error('defect');
      },
    });
    expect(await get(`${url}/healthz`)).toMatch(/^500 /);
    expect(await get(`${url}/readyz`)).toBe('200 ok');
  });

  it.each(['127.0.0.1:0', '[::1]:0', ':0', 'localhost:0'])('listens on %s', async (address) => {
    const server = await serveProbes(address, { alive: () => true, ready: () => true, metrics: async () => '' });
    open.push(server);
    expect(server.port).toBeGreaterThan(0);
  });

  it('rejects when the port is taken', async () => {
    const { port } = new URL(await serve());
    await expect(serve({}, `127.0.0.1:${port}`)).rejects.toThrow('EADDRINUSE');
  });

  it('ends although a client keeps its connection open', async () => {
    const { port } = new URL(await serve());
    const socket = connect(Number(port), '127.0.0.1');
    socket.on('error', () => undefined);
    await new Promise<void>((resolve) => socket.once('connect', () => resolve()));
    await open.pop()?.close();
    await new Promise<void>((resolve) => socket.once('close', () => resolve()));
    expect(socket.destroyed).toBe(true);
  });
});

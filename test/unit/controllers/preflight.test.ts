import { expect, it } from 'vitest';
import { waiting } from '../../../src/base/errors.ts';
import { Preflight } from '../../../src/controllers/byo/preflight.ts';
import { FakeClock } from '../kube/fake-clock.ts';

const { signal } = new AbortController();

/** A check that counts its questions to a registry which is down or not. */
function checked() {
  const clock = new FakeClock();
  const registry = { down: true, pings: 0 };
  const ping = async () => {
    registry.pings++;
    if (registry.down) throw waiting('RegistryUnavailable', 'the registry is down');
  };
  const preflight = new Preflight({
    registry: { host: 'registry.example.com', ping, acceptsAnonymousWrites: async () => false },
    store: { acceptsAnonymousWrites: async () => false },
    allowAnonymousWrites: false,
    clock,
  });
  const reason = async (asked = false) => (await preflight.problem('skills/a', asked, signal))?.reason;
  return { clock, registry, reason };
}

it('asks a registry that is down once a second, and at once for a person who asks', async () => {
  const { clock, registry, reason } = checked();
  expect([await reason(), await reason(), registry.pings]).toEqual(['RegistryUnavailable', 'RegistryUnavailable', 1]);
  registry.down = false;
  expect([await reason(), registry.pings]).toEqual(['RegistryUnavailable', 1]);
  expect([await reason(true), registry.pings]).toEqual([undefined, 2]);
  expect([await reason(), registry.pings]).toEqual([undefined, 2]);
  registry.down = true;
  await clock.advance(299_000);
  expect([await reason(true), registry.pings]).toEqual([undefined, 2]);
  await clock.advance(1_000);
  expect([await reason(), registry.pings]).toEqual(['RegistryUnavailable', 3]);
  await clock.advance(1_000);
  expect([await reason(), registry.pings]).toEqual(['RegistryUnavailable', 4]);
});

it('asks once for all that want to know at the same time', async () => {
  const { registry, reason } = checked();
  await Promise.all([reason(), reason(), reason(true), reason(true)]);
  expect(registry.pings).toBe(1);
});

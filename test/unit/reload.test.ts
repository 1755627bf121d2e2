import { expect, test } from 'vitest';
import { createLogger } from '../../src/base/log.ts';
import { parseConfig } from '../../src/config.ts';
import { SettingsWatch } from '../../src/reload.ts';
import { FakeClock } from './kube/fake-clock.ts';

const store = { endpoint: 'http://s3:9000', bucket: 'skills', accessKey: 'a', secretKey: 'a-long-secret-key' };

function setup() {
  const lines: { level: string; msg: string }[] = [];
  const log = createLogger('info', { write: (line) => lines.push(JSON.parse(line)) });
  let raw: object = { store };
  const clock = new FakeClock();
  const watch = new SettingsWatch({ read: () => parseConfig(raw), started: parseConfig(raw), log, clock });
  const texts = () => lines.splice(0).map(({ msg }) => msg);
  return { watch, clock, log, texts, set: (next: object) => (raw = next) };
}

test('a changed log level counts at once, for loggers that exist already too', () => {
  const { watch, log, texts, set } = setup();
  const child = log.logger.child({ lease: 'x' });
  child.debug('too much');
  set({ store, logLevel: 'debug' });
  watch.look();
  child.debug('wanted');
  set({ store, logLevel: 'silent' });
  watch.look();
  child.fatal('silence');
  expect(texts()).toEqual(['the settings changed: the log level is debug', 'wanted']);
});

test('other changes are named, wrong settings change nothing, and each is told once', () => {
  const { watch, texts, set } = setup();
  watch.look();
  expect(texts()).toEqual([]);
  set({ store, skillWorkers: 3, logLevel: 'warn' });
  watch.look();
  set({ store, skillWorkers: 3, logLevel: 'info' });
  watch.look();
  watch.look();
  set({ store, logLevel: 'loud' });
  watch.look();
  watch.look();
  const said = texts();
  expect(said[0]).toBe('the settings changed: the log level is info; skillWorkers count from the next start');
  expect(said[1]).toMatch(/^the changed settings are not taken over: .*logLevel/);
  expect(said).toHaveLength(2);
});

test('it looks every ten seconds until it is stopped', async () => {
  const { watch, clock, texts, set } = setup();
  const stop = new AbortController();
  const ended = watch.run(stop.signal);
  set({ store, logLevel: 'debug' });
  await clock.advance(9_999);
  expect(texts()).toEqual([]);
  await clock.advance(1);
  expect(texts()).toEqual(['the settings changed: the log level is debug']);
  stop.abort();
  await ended;
  expect(clock.timers).toBe(0);
});

import type { Observe } from '../base/observe.ts';
import type { SandboxEngine } from './port.ts';

/** The same engine, every step of which is taken note of. */
export function observedEngine(engine: SandboxEngine, observe: Observe): SandboxEngine {
  const step = <T>(name: string, fn: () => Promise<T>): Promise<T> =>
    observe({ system: 'engine', name, target: engine.kind }, fn);
  return {
    kind: engine.kind,
    buildDeadlineMs: engine.buildDeadlineMs,
    health: (signal) => step('health', () => engine.health(signal)),
    allocate: (spec, context, signal) => step('allocate', () => engine.allocate(spec, context, signal)),
    start: (spec, ref, signal) => step('start', () => engine.start(spec, ref, signal)),
    poll: (ref, signal) => step('poll', () => engine.poll(ref, signal)),
    delete: (ref, signal) => step('delete', () => engine.delete(ref, signal)),
    exists: (id, signal) => step('exists', () => engine.exists(id, signal)),
    resolve: (id, signal) => step('resolve', () => engine.resolve(id, signal)),
    list: (signal) => step('list', () => engine.list(signal)),
    duplicates: (ref, held, signal) => step('duplicates', () => engine.duplicates(ref, held, signal)),
  };
}

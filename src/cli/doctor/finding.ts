import type { Clock } from '../../base/clock.ts';
import type { Home } from '../cluster/home.ts';
import type { Session } from '../cluster/session.ts';

/** What one check found; the shape of the JSON output. */
export interface Finding {
  /** Name of the check. */
  check: string;
  level: 'ok' | 'warn' | 'FAIL';
  message: string;
  /** What to type or change; absent where nothing is wrong. */
  fix?: string;
}

/** What checks work with. */
export interface Bench {
  session: Session;
  home: Home;
  clock: Clock;
  /** What the operator says of stores, registries and engines in its conditions. */
  seen: SeenByOperator;
}

/** Reasons of conditions that are not well, with one message each, and how many Skills are Ready. */
export interface SeenByOperator {
  ready: number;
  reasons: ReadonlyMap<string, { count: number; message: string }>;
}

/** One check; whatever it throws becomes a finding. */
export interface Check {
  name: string;
  run: (bench: Bench, signal: AbortSignal) => Promise<Finding[]>;
}

export const ok = (check: string, message: string): Finding => ({ check, level: 'ok', message });
export const warn = (check: string, message: string, fix: string): Finding => ({ check, level: 'warn', message, fix });
export const fail = (check: string, message: string, fix: string): Finding => ({ check, level: 'FAIL', message, fix });

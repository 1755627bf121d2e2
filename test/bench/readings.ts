import type { Samples } from '../support/samples.ts';
import type { ProcessFigures } from './procstat.ts';

/** Counters of the operator and of the kernel at one moment. */
export interface Reading extends ProcessFigures {
  samples: Samples;
}

/** What the operator asked of its surroundings. */
interface Requests {
  /** Of the Kubernetes API: all, and the lists among them. */
  api: number;
  lists: number;
  /** Of the store: all, and the PUTs among them. */
  store: number;
  puts: number;
  /** Git processes that talked to a remote. */
  git: number;
}

/** Growth of a counter between two readings of one process. */
export const growth = (before: Reading, after: Reading, name: string, labels: Record<string, string> = {}): number =>
  after.samples.value(name, labels) - before.samples.value(name, labels);

/** The requests between two readings of one process. */
export const requestsBetween = (before: Reading, after: Reading): Requests => ({
  api: growth(before, after, 'rest_client_requests_total'),
  lists: growth(before, after, 'rest_client_requests_total', { method: 'list' }),
  store: growth(before, after, 'skill_operator_store_requests_total'),
  puts: growth(before, after, 'skill_operator_store_requests_total', { operation: 'put' }),
  git: growth(before, after, 'skill_operator_git_requests_total'),
});

/** The sampling interval of the gauge, which it counts in. */
const RESOLUTION_MS = 10;

/** Longest time that the event loop stood still since the reading before, in milliseconds. */
export const loopDelayMs = ({ samples }: Reading): number =>
  Math.max(0, samples.value('nodejs_eventloop_lag_max_seconds') * 1000 - RESOLUTION_MS);

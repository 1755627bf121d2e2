import { expect, test } from 'vitest';
import type { K8sObject } from '../../support/k8s.ts';
import { statusFaults } from '../../support/kstatus.ts';

const condition = (type: string, over: Record<string, unknown> = {}) => ({
  type,
  status: 'True',
  reason: 'Succeeded',
  message: 'fine',
  observedGeneration: 1,
  lastTransitionTime: '2026-01-01T00:00:00Z',
  ...over,
});
const ready = condition('Ready');
const notReady = condition('Ready', { status: 'False', reason: 'Invalid' });

const skill = (status: Record<string, unknown>): K8sObject => ({
  apiVersion: 'skills.tfrobot.io/v1alpha1',
  kind: 'Skill',
  metadata: { name: 's', generation: 1 },
  status: { observedGeneration: 1, ...status },
});

const GOOD: Record<string, Record<string, unknown>> = {
  'no pass yet': { observedGeneration: -1 },
  ready: { conditions: [ready] },
  stalled: { conditions: [notReady, condition('Stalled', { reason: 'Invalid' })] },
  suspended: { conditions: [condition('Ready', { status: 'False', reason: 'Suspended' })] },
};

const BAD: Record<string, [status: Record<string, unknown>, fault: RegExp]> = {
  'no Ready': [{ conditions: [condition('Serving')] }, /no condition Ready/],
  'Ready beside Stalled': [{ conditions: [ready, condition('Stalled')] }, /Ready stands beside Stalled/],
  'both abnormal': [{ conditions: [notReady, condition('Stalled'), condition('Reconciling')] }, /stand together/],
  'not Ready alone': [{ conditions: [notReady] }, /neither Reconciling nor Stalled/],
  'abnormal False': [{ conditions: [ready, condition('NameConflict', { status: 'False' })] }, /only stand while True/],
  'unknown type': [{ conditions: [ready, condition('Healthy')] }, /not in the closed list/],
  'unknown reason': [{ conditions: [condition('Ready', { reason: 'Because' })] }, /not in the catalogue/],
  twice: [{ conditions: [ready, ready] }, /stands twice/],
  'broken message': [{ conditions: [condition('Ready', { message: 'version undefined' })] }, /is broken/],
  'empty message': [{ conditions: [condition('Ready', { message: '' })] }, /0 characters/],
  'a condition ahead': [{ conditions: [condition('Ready', { observedGeneration: 2 })] }, /generation 2 of 1/],
  'no time': [{ conditions: [condition('Ready', { lastTransitionTime: 'now' })] }, /no transition time/],
  ahead: [{ observedGeneration: 2 }, /is ahead/],
  'no observedGeneration': [{ observedGeneration: undefined }, /is missing/],
  'too large': [{ conditions: [ready], description: 'x'.repeat(17_000) }, /17\d+ bytes/],
  'wrong version': [{ served: { version: 'a', digest: 'b'.repeat(64) } }, /is not of/],
  'unknown code': [{ violations: [{ code: 'Bad', hint: 'x' }] }, /code Bad/],
  'no hint': [{ violations: [{ code: 'LfsPointer', hint: '' }] }, /has no hint/],
  'unknown slot reason': [{ candidate: { version: '', digest: '', reason: 'Because' } }, /reason Because/],
  'wrong sum': [{ skills: { total: 2, ready: 1 } }, /do not add up/],
};

test.each(Object.entries(GOOD))('%s is in order', (_, status) => {
  expect(statusFaults(skill(status))).toEqual([]);
});

test.each(Object.entries(BAD))('%s is a fault', (_, [status, fault]) => {
  expect(statusFaults(skill(status)).join('\n')).toMatch(fault);
});

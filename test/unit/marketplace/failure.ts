import { PolicyError } from '../../../src/base/errors.ts';

/** `Policy Reason: message` of what the call throws. */
export function thrown(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    if (error instanceof PolicyError) return `${error.policy} ${error.reason}: ${error.message}`;
    throw error;
  }
  throw new Error('it did not throw');
}

import { ANNOTATIONS } from '../api/labels.ts';
import { PolicyError } from '../base/errors.ts';
import { toPolicyError } from '../kube/errors.ts';
import type { KubeObject } from '../kube/types.ts';

/** What `catch` gave as a PolicyError; one that waits for somebody outside ends with the command that retries now (I17). */
export function explained(error: unknown, kind: 'marketplacesource' | 'skill', object: KubeObject): PolicyError {
  const policy = toPolicyError(error);
  if (policy.policy !== 'Waiting') return policy;
  const { namespace, name } = object.metadata;
  const command = `kubectl -n ${namespace} annotate ${kind} ${name} ${ANNOTATIONS.requestedAt}="$(date +%s)" --overwrite`;
  return new PolicyError('Waiting', policy.reason, `${policy.message}; retry now: ${command}`, {
    cause: error,
    ...(policy.retryAfterMs === undefined ? {} : { retryAfterMs: policy.retryAfterMs }),
  });
}

import type { MarketplaceSource, Problem } from '../../api/marketplacesource.ts';
import { SECRETS } from '../../api/resources.ts';
import { PolicyError } from '../../base/errors.ts';
import type { KubeApi } from '../../kube/types.ts';
import { commandFor, type TokenSecret, tokenOf } from '../../webhook/secret.ts';
import { capProblems } from './problems.ts';

/** The entry of status.problems that is about deliveries and not about content. */
const PATH = 'spec.webhook';

/**
 * Why no webhook delivery for this source will be accepted; null when nothing is in the way, undefined when that cannot be known now.
 * The pass goes on either way: without deliveries the source is looked at by its interval.
 */
export async function webhookProblem(
  source: MarketplaceSource,
  { api, webhooks }: { api: KubeApi; webhooks: boolean },
  signal: AbortSignal,
): Promise<Problem | null | undefined> {
  const ref = source.spec.webhook?.secretRef;
  if (!ref) return null;
  if (!webhooks) {
    const message =
      'this installation receives no webhooks, so the source is looked at by spec.interval alone; set webhook.enabled of the chart (--webhook-address), or remove spec.webhook';
    return { path: PATH, reason: 'WebhookDisabled', message };
  }
  const { namespace = '' } = source.metadata;
  try {
    const secret = await api.get<TokenSecret>(SECRETS, namespace, ref.name, signal);
    if (secret) tokenOf(secret);
    else {
      const message = `Secret "${ref.name}" with the webhook token not found, so deliveries are refused; ${commandFor(namespace, ref.name)} makes one`;
      return { path: PATH, reason: 'SecretNotFound', message };
    }
  } catch (error) {
    signal.throwIfAborted();
    return error instanceof PolicyError ? { path: PATH, reason: error.reason, message: error.message } : undefined;
  }
  return null;
}

/** The problems of the content, with that of the webhook in front; `webhook` undefined keeps what stood in `before`. */
export function withWebhook(
  problems: readonly Problem[],
  webhook: Problem | null | undefined,
  before: readonly Problem[] = [],
): Problem[] {
  const content = problems.filter(({ path }) => path !== PATH);
  const own = webhook === undefined ? before.find(({ path }) => path === PATH) : webhook;
  return own ? capProblems([own, ...content]) : content;
}

import { createHmac } from 'node:crypto';
import { applySecret } from '../../support/market.ts';
import type { Operator } from '../../support/operator.ts';

/** The token of all tests of this folder. */
export const TOKEN = 'a-token-that-nobody-may-see-in-a-log';

/** What a sender saw. */
export interface Reply {
  status: number;
  text: string;
  headers: Record<string, string>;
}

/** Address of the receiver. */
export async function receiverOf(operator: Operator): Promise<string> {
  const { port } = await operator.waitForLog('receiving webhooks');
  return `http://127.0.0.1:${port}`;
}

/** The headers of a signed delivery of GitHub. */
export const signed = (body: string, event = 'push', token = TOKEN): Record<string, string> => ({
  'content-type': 'application/json',
  'user-agent': 'GitHub-Hookshot/044aadd',
  'x-github-event': event,
  'x-github-delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0958',
  'x-hub-signature-256': `sha256=${createHmac('sha256', token).update(body).digest('hex')}`,
});

/** Sends one delivery; the headers of the reply come without those that carry a time or a connection. */
export async function deliver(url: string, key: string, body: string, headers: Record<string, string>): Promise<Reply> {
  const signal = AbortSignal.timeout(60_000);
  const response = await fetch(`${url}/hooks/${key}`, { method: 'POST', body, headers, signal });
  const seen = Object.fromEntries(response.headers);
  for (const name of ['date', 'connection', 'keep-alive']) delete seen[name];
  return { status: response.status, text: await response.text(), headers: seen };
}

/** Makes the Secret of spec.webhook. */
export const applyToken = (operator: Operator, name: string, token = TOKEN) => applySecret(operator, name, { token });

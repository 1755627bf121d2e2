// Prints one Slack thread as JSON. Argument: the link to any message of the thread.
import { z } from 'zod';

const PAGE = 100;
const MAX_MESSAGES = 400;
const TIMEOUT_MS = 20_000;

const reply = z.object({
  ok: z.boolean(),
  error: z.string().optional(),
  messages: z.array(z.object({ user: z.string().optional(), ts: z.string(), text: z.string().default('') })).default([]),
  response_metadata: z.object({ next_cursor: z.string().optional() }).optional(),
});

function parseLink(link: string): { channel: string; ts: string } {
  const match = /^https:\/\/[^/]+\.slack\.com\/archives\/([A-Z0-9]+)\/p(\d{10})(\d{6})(?:\?|$)/.exec(link);
  if (!match) throw new Error('that is not a link to a Slack message');
  const root = new URL(link).searchParams.get('thread_ts');
  return { channel: match[1]!, ts: root ?? `${match[2]}.${match[3]}` };
}

async function page(channel: string, ts: string, cursor: string): Promise<z.infer<typeof reply>> {
  const query = new URLSearchParams({ channel, ts, cursor, limit: String(PAGE) });
  const response = await fetch(`${process.env['SLACK_API']}/conversations.replies?${query}`, {
    headers: { authorization: `Bearer ${process.env['SLACK_BOT_TOKEN']}` },
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  if (!response.ok) throw new Error(`Slack answered ${response.status}`);
  const body = reply.parse(await response.json());
  if (!body.ok) throw new Error(body.error ?? 'Slack refused without a reason');
  return body;
}

async function main(): Promise<void> {
  const { channel, ts } = parseLink(process.argv[2] ?? '');
  const messages: { user: string; time: string; text: string }[] = [];
  let cursor = '';
  do {
    const body = await page(channel, ts, cursor);
    for (const message of body.messages) {
      const time = new Date(Number(message.ts) * 1000).toISOString();
      messages.push({ user: message.user ?? 'unknown', time, text: message.text });
    }
    cursor = body.response_metadata?.next_cursor ?? '';
  } while (cursor && messages.length < MAX_MESSAGES);
  const truncated = cursor !== '' || messages.length > MAX_MESSAGES;
  console.log(JSON.stringify({ messages: messages.slice(0, MAX_MESSAGES), truncated }));
}

main().catch((error: unknown) => {
  console.log(JSON.stringify({ error: error instanceof Error ? error.message : String(error) }));
  process.exitCode = 1;
});

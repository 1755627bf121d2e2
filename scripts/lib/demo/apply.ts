import { setTimeout as delay } from 'node:timers/promises';
import { stringify } from 'yaml';
import { API_VERSION, LABELS } from '../../../src/api/labels.ts';
import { messageOf } from '../../../src/base/errors.ts';
import { parseUrl } from '../../../src/marketplace/url.ts';
import { ApiFailure, condition, type K8sObject } from '../../../test/support/k8s.ts';
import { duration } from './screen.ts';
import { BROKEN_ON_PURPOSE, countLine, type SkillView, skillTable, viewOf } from './skills.ts';
import { type Hands, NAMESPACE, type Stage } from './stage.ts';

/** Name of the demo's MarketplaceSource. */
export const SOURCE = 'examples';

const LOOK_MS = 60;
/** A marketplace of a stranger may take a while to fetch. */
const SETTLE_MS = 180_000;
/** A source that says no for this long does not come round by itself. */
const REFUSED_MS = 15_000;
/** Rows of a table on a screen whose height is not known. */
const PLAIN_ROWS = 60;
/** Skills that are not Ready and get their message printed. */
const MESSAGES = 10;
/** A plain log gets a line at most this often. */
const WORD_MS = 1000;

/** The MarketplaceSource for a repository. */
function sourceFor(url: string): K8sObject {
  return {
    apiVersion: API_VERSION,
    kind: 'MarketplaceSource',
    metadata: { name: SOURCE, namespace: NAMESPACE },
    spec: { type: 'git', git: { url }, interval: '1m' },
  };
}

/** Why the demo cannot take this address, before anything is started; undefined when it can. */
export function urlObstacle(url: string): string | undefined {
  try {
    return parseUrl(url).protocol === 'ssh'
      ? 'URL must be an https:// or http:// address: the demo has no key for ssh'
      : undefined;
  } catch (error) {
    return messageOf(error);
  }
}

/** Shows and applies the MarketplaceSource. */
export async function applySource({ screen }: Stage, operator: Hands, url: string): Promise<string> {
  const object = sourceFor(url);
  const yaml = stringify(object).trimEnd().split('\n');
  screen.command("kubectl apply -f - <<'EOF'");
  screen.say(...yaml.map((line) => screen.paint('cyan', line)), screen.paint('cyan', 'EOF'));
  try {
    await operator.k8s.apply(object, { manager: 'kubectl' });
  } catch (error) {
    if (error instanceof ApiFailure && error.status === 422)
      throw new Error(`the API server does not take the URL: ${error.message}`, { cause: error });
    throw error;
  }
  return `MarketplaceSource ${NAMESPACE}/${SOURCE} is applied`;
}

/** All Skills of the source, by name. */
async function listSkills(operator: Hands): Promise<SkillView[]> {
  const labelSelector = `${LABELS.source}=${SOURCE}`;
  const objects = await operator.k8s.list({
    apiVersion: API_VERSION,
    kind: 'Skill',
    namespace: NAMESPACE,
    labelSelector,
  });
  return objects.map(viewOf).sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** What the source says while it is not Ready; undefined when it is. Throws when it will not become so. */
async function sourceObstacle(operator: Hands, refusedMs: number): Promise<string | undefined> {
  const object = await operator.k8s.get(operator.source(SOURCE));
  if (!object) throw new Error(`MarketplaceSource ${SOURCE} has vanished`);
  const ready = condition(object, 'Ready');
  if (object.status?.observedGeneration === object.metadata.generation && ready?.status === 'True') return undefined;
  const said = ready ? `${ready.reason}: ${ready.message}` : 'no status yet';
  if (condition(object, 'Stalled') || (ready?.status === 'False' && refusedMs > REFUSED_MS))
    throw new Error(`the marketplace cannot be read. ${said}`);
  return said;
}

/** Draws the table in place, or in a plain log one line when the counts changed. */
function reporter({ screen }: Stage): (views: readonly SkillView[], obstacle: string | undefined) => void {
  const began = performance.now();
  let last = { line: '', at: 0 };
  return (views, obstacle) => {
    const rows = screen.liveRows;
    if (rows !== undefined) {
      const wait = obstacle === undefined ? [] : [screen.paint('dim', obstacle.slice(0, screen.width))];
      const options = { rows, width: screen.width, paint: screen.paint };
      screen.live(views.length === 0 ? wait : [...wait, ...skillTable(views, options)]);
      return;
    }
    const line = views.length === 0 ? (obstacle ?? '') : countLine(views);
    const at = performance.now() - began;
    if (line === last.line || (at - last.at < WORD_MS && last.line !== '' && !views.every((view) => view.settled)))
      return;
    last = { line, at };
    screen.say(`${duration(at).padStart(7)}  ${line}`);
  };
}

function explain({ screen, url }: Stage, views: readonly SkillView[]): void {
  const open = views.filter((view) => !view.ready);
  if (open.length === 0) return;
  screen.say('', `Not Ready, and what the condition Ready says:`);
  for (const { name, message } of open.slice(0, MESSAGES)) {
    const note = name === BROKEN_ON_PURPOSE && url === undefined ? '  (broken on purpose)' : '';
    screen.say(screen.paint('yellow', name) + screen.paint('dim', note));
    screen.tell(message, undefined, 2);
  }
  if (open.length > MESSAGES) screen.say(screen.paint('dim', `and ${open.length - MESSAGES} more`));
}

/** Watches until the source is Ready and every Skill has settled; resolves with the Skills. */
export async function watchSkills(stage: Stage, operator: Hands): Promise<{ views: SkillView[]; summary: string }> {
  const { screen, signal } = stage;
  const began = performance.now();
  const report = reporter(stage);
  screen.command(`kubectl get skills -n ${NAMESPACE} --watch`);
  for (;;) {
    const obstacle = await sourceObstacle(operator, performance.now() - began);
    const views = await listSkills(operator);
    signal.throwIfAborted();
    report(views, obstacle);
    if (obstacle === undefined && views.every((view) => view.settled)) {
      screen.erase();
      const options = { rows: screen.liveRows ?? PLAIN_ROWS, width: screen.width, paint: screen.paint };
      screen.say('', ...skillTable(views, options));
      explain(stage, views);
      screen.say('');
      return { views, summary: countLine(views) };
    }
    if (performance.now() - began > SETTLE_MS)
      throw new Error(`the Skills did not settle within ${duration(SETTLE_MS)}: ${obstacle ?? countLine(views)}`);
    await operator.check();
    await delay(LOOK_MS, undefined, { signal });
  }
}

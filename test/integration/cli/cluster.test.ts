import { expect, test } from 'vitest';
import { ANNOTATIONS } from '../../../src/api/labels.ts';
import { condition } from '../../support/k8s.ts';
import { marketplace, skillMd, waitNotReady, waitReady } from '../../support/market.ts';
import { newMarket, useOperator } from '../controllers/harness.ts';
import { type Outcome, skillctl } from './helpers.ts';

/** For a machine on which everything takes five times as long. */
const slow = { timeout: 180_000 };
const harness = useOperator();

/** Runs skillctl against the cluster, in the namespace of the operator's objects. */
const run = (...args: string[]): Promise<Outcome> => {
  const { info, namespace } = harness.operator;
  return skillctl('/', ...args, '--kubeconfig', info.kubeconfig, '-n', namespace);
};
const here = (text: string): string => text.replaceAll(harness.operator.namespace, '<ns>');

test('get, trace and reconcile show and steer what the operator made of a marketplace', slow, async () => {
  const { operator } = harness;
  const files = marketplace({
    docs: { pdf: {}, odt: { 'SKILL.md': skillMd({ name: 'odts' }) }, note: { 'SKILL.md': '', 'a.txt': 'a' } },
  });
  const { repository, source } = await newMarket(operator, 'team', files);
  await waitReady(operator.k8s, operator.skill('team.docs.pdf'));
  await waitNotReady(operator.k8s, operator.skill('team.docs.odt'), 'Invalid');

  const all = await run('get');
  expect(all).toMatchObject({ code: 0, err: '' });
  expect(all.out).toMatch(/^SOURCE .*\nteam +git +main@[0-9a-f]{12} /);
  expect(all.out).toMatch(/\nteam\.docs\.odt +\S+ +- +- +\d+s +Invalid +- +SKILL\.md:2:7/);
  expect(all.out).toMatch(/\nteam\.docs\.pdf +prompt-only +[0-9a-f]{12} +- +\d+s +Ready +Succeeded/);
  const everywhere = await skillctl('/', 'get', 'skills', '-A', '-o', 'json', '--kubeconfig', operator.info.kubeconfig);
  expect(JSON.parse(everywhere.out).items).toContainEqual(
    expect.objectContaining({
      kind: 'Skill',
      metadata: expect.objectContaining({ namespace: operator.namespace, name: 'team.docs.pdf' }),
    }),
  );
  expect((await run('get', 'source', 'team', '-o', 'yaml')).out).toMatch(/^apiVersion: v1\nkind: List\nitems:\n/);

  expect(await run('trace', 'pdf')).toMatchObject({ code: 0, out: expect.stringMatching(/\n\nReady\n$/) });
  const invalid = await run('trace', 'docs/odt');
  expect([invalid.code, invalid.out]).toEqual([1, expect.stringContaining('Stopped at version: Invalid')]);
  const never = await run('trace', 'note', '-o', 'json');
  expect([never.code, JSON.parse(never.out)]).toMatchObject([
    1,
    {
      exists: false,
      stopped: { step: 'commit', reason: 'SkillMdMissing' },
      next: ['correct it and push a commit', expect.any(String)],
    },
  ]);

  await repository.commit(marketplace({ docs: { odt: {}, note: {} } }), { keep: false });
  const waited = await run('reconcile', 'source', 'team', '--with-skills', '--timeout', '50s');
  expect(waited, waited.err).toMatchObject({ code: 0 });
  expect(here(waited.out)).toMatch(/^MarketplaceSource team in <ns> was looked at at \S+@[0-9a-f]{12}\n {2}Ready: /);
  expect((await run('trace', 'team.docs.odt')).code).toBe(0);
  // The command that trace showed for the skill that was missing.
  expect((await run('reconcile', 'skill/note', '--wait', '-o', 'json')).code).toBe(0);

  await repository.commit(marketplace({ docs: { pdf: { 'SKILL.md': skillMd({ name: 'x' }) } } }), { keep: false });
  const bad = await run('reconcile', 'team', '--with-skills', '-o', 'json');
  expect([bad.code, JSON.parse(bad.out)]).toMatchObject([
    1,
    { state: 'Ready', notReady: [{ name: 'team.docs.pdf', reason: 'Invalid' }] },
  ]);
  const { metadata, status } = await operator.k8s.waitFor(source, () => true);
  expect(metadata.annotations?.[ANNOTATIONS.requestedAt]).toBe(status.lastHandledReconcileAt);
});

test('the examples of the help texts run as printed', slow, async () => {
  for (const command of ['get', 'trace', 'reconcile', 'suspend', 'resume']) {
    const { out } = await skillctl('/', command, '--help');
    for (const [, line = ''] of out.matchAll(/^ {2}\$ skillctl (.*)$/gm)) {
      const result = await run(...line.split(' '));
      // pdf breaks a rule since the test before: that is an answer, too.
      expect(result.code, `${line}\n${result.err}`).toBeLessThanOrEqual(1);
      expect(result.out, line).not.toBe('');
    }
  }
});

test('suspend and resume, twice each; nothing is asked of what is suspended', slow, async () => {
  const { operator } = harness;
  const { source } = await newMarket(operator, 'paused', marketplace({ p: { calm: {} } }));
  expect(here((await run('suspend', 'paused')).out)).toBe('MarketplaceSource paused in <ns> is suspended\n');
  expect(here((await run('suspend', 'paused')).out)).toBe('MarketplaceSource paused in <ns> is suspended already\n');
  expect(here((await run('reconcile', 'paused', '--wait')).err)).toBe(
    'skillctl: MarketplaceSource paused is suspended, so nothing will happen; first: skillctl resume source paused -n <ns>\n',
  );
  expect((await run('get', 'source', 'paused')).out).toContain('Suspended');
  expect(here((await run('resume', 'source', 'paused', '-o', 'json')).out)).toContain('"done": "is resumed"');
  expect((await operator.k8s.waitFor(source, () => true)).spec).not.toHaveProperty('suspend');
  expect((await run('resume', 'paused')).out).toContain('is not suspended already');
  expect((await run('rebuild', 'calm')).err).toContain('has no image of its own (runtime: prompt-only)');
});

test('what fails is told with its reason, and what does not come with exit code 3', slow, async () => {
  const { operator } = harness;
  const { source } = await newMarket(operator, 'breaks', marketplace({ p: { whole: {} } }));
  await operator.k8s.patch(source, { spec: { git: { url: `${operator.info.git.httpUrl}/no-such-repository.git` } } });
  const failed = await run('reconcile', 'source', 'breaks', '--wait');
  expect([failed.code, failed.out]).toEqual([1, expect.stringMatching(/\n {2}\w+ \(RepositoryNotFound\): /)]);
  expect((await run('trace', 'whole')).out).toContain('Stopped at source: RepositoryNotFound');
  // A Skill that no source makes any more is nobody's to answer.
  await operator.stop();
  const silent = await run('reconcile', 'skill', 'whole', '--wait', '--timeout', '1s');
  expect([silent.code, silent.err]).toEqual([3, expect.stringContaining('did not end within 1 s')]);
  expect(silent.err).toContain('skillctl doctor');
  await operator.start();
  expect(condition(await waitReady(operator.k8s, operator.skill('breaks.p.whole')), 'Ready')).toBeDefined();
});

test('errors say what to do', slow, async () => {
  const { operator } = harness;
  const { kubeconfig } = operator.info;
  const cases: [string[], RegExp][] = [
    [['get', 'source', 'nobody'], /no MarketplaceSource "nobody"; namespace \S+ has/],
    [['trace', 'nobody'], /no Skill and no problem of a source is called "nobody"|Stopped at source/],
    [['reconcile', 'nobody'], /neither a MarketplaceSource nor a Skill "nobody"/],
    [['reconcile', 'thing', 'x'], /"thing" is no kind; type "source" or "skill"/],
    [['reconcile', 'x', '--timeout', 'soon'], /give a time such as 90s/],
    [['get', '--context', 'no-such'], /has no context "no-such"; it has: /],
  ];
  for (const [args, message] of cases) {
    const { code, out, err } = await run(...args);
    expect(`${out}${err}`, args.join(' ')).toMatch(message);
    expect(code, args.join(' ')).toBeGreaterThan(0);
  }
  const empty = await skillctl('/', 'get', '-n', 'kube-public', '--kubeconfig', kubeconfig);
  expect(empty).toEqual({
    code: 0,
    out: '',
    err: 'No MarketplaceSource and no Skill in namespace kube-public. -A looks everywhere.\n',
  });
  const gone = await skillctl('/', 'get', '--kubeconfig', '/no/such/file');
  expect(gone).toMatchObject({ code: 2, err: expect.stringContaining('set KUBECONFIG or --kubeconfig') });
});

import { expect, test } from 'vitest';
import { condition } from '../../support/k8s.ts';
import { marketplace, requestPass, skillMd, waitNotReady, waitReady } from '../../support/market.ts';
import { readObject } from '../../support/s3.ts';
import { messageOf, newMarket, useOperator, waitSkills } from './harness.ts';

const harness = useOperator();

test('a Skill whose SKILL.md vanished says so itself and stays served; a directory that never had one is a problem', async () => {
  const { operator } = harness;
  const market = marketplace({ p: { lost: { 'a.md': 'a' }, never: { 'SKILL.md': '', 'a.md': 'a' } } });
  const extra = { 'plugins/p/skills/_drafts/a.md': 'a', 'plugins/p/skills/.hidden/a.md': 'a' };
  const { repository, source } = await newMarket(operator, 'missing', { ...market, ...extra });
  const ref = operator.skill('missing.p.lost');
  const good = await waitReady(operator.k8s, ref);
  expect((await waitReady(operator.k8s, source)).status.problems).toEqual([
    {
      path: 'plugins/p/skills/never',
      reason: 'SkillMdMissing',
      message: 'the directory has no SKILL.md: add one, or start the name of the directory with "_" to keep it out',
    },
  ]);
  await repository.commit({}, { remove: ['plugins/p/skills/lost/SKILL.md'] });
  const { status } = await requestPass(operator.k8s, source);
  expect(status.problems.map(({ path }: { path: string }) => path)).toEqual(['plugins/p/skills/never']);
  const bad = await waitNotReady(operator.k8s, ref, 'Invalid');
  expect(messageOf(bad, 'Ready')).toMatchInlineSnapshot(
    `"the directory: the skill lost has no SKILL.md (add SKILL.md that starts with the lines ---, name: lost, description: …, ---); version <version> stays served"`,
  );
  expect(bad.status.violations[0].code).toBe('SkillMdMissing');
  expect(bad.status.served).toEqual(good.status.served);
  await waitSkills(operator, 'missing', ['p.lost']);
});

test('a file named skill.md is a problem, and makes an existing Skill invalid', async () => {
  const { operator } = harness;
  const md = skillMd({ name: 'cased' });
  const { repository, source } = await newMarket(operator, 'case', {
    ...marketplace({ p: { cased: {} } }),
    'plugins/p/skills/new-cased/skill.md': skillMd({ name: 'new-cased' }),
  });
  const ref = operator.skill('case.p.cased');
  const good = await waitReady(operator.k8s, ref);
  expect((await waitReady(operator.k8s, source)).status.problems).toEqual([
    {
      path: 'plugins/p/skills/new-cased',
      reason: 'SkillMdWrongCase',
      message: 'skill.md is not read: rename it to SKILL.md',
    },
  ]);
  await repository.commit({ 'plugins/p/skills/cased/Skill.md': md }, { remove: ['plugins/p/skills/cased/SKILL.md'] });
  await requestPass(operator.k8s, source);
  const bad = await waitNotReady(operator.k8s, ref, 'Invalid');
  expect(messageOf(bad, 'Ready')).toMatchInlineSnapshot(
    `"the directory: the skill cased has no SKILL.md, found Skill.md (rename it: git mv -- Skill.md SKILL.md); version <version> stays served"`,
  );
  expect(bad.status.served).toEqual(good.status.served);
});

test('submodules are not followed: a problem in place of a skill, a violation inside one', async () => {
  const { operator } = harness;
  const submodule = 'c'.repeat(40);
  const { source } = await newMarket(operator, 'modules', {
    ...marketplace({ p: { inside: { 'vendor/lib': { submodule } }, beside: {} } }),
    'plugins/p/skills/outside': { submodule },
    'plugins/whole': { submodule },
  });
  const { status } = await waitReady(operator.k8s, source);
  expect(status.problems.map(({ path, reason }: Record<string, string>) => `${path} ${reason}`)).toEqual([
    'plugins/p/skills/outside SubmoduleNotSupported',
    'plugins/whole SubmoduleNotSupported',
  ]);
  const bad = await waitNotReady(operator.k8s, operator.skill('modules.p.inside'), 'Invalid');
  expect(bad.status.violations).toMatchObject([{ code: 'SubmoduleNotSupported', path: 'vendor/lib' }]);
  await waitReady(operator.k8s, operator.skill('modules.p.beside'));
  await waitSkills(operator, 'modules', ['p.inside', 'p.beside']);
});

test('a symbolic link inside a skill becomes a copy; one that leads elsewhere makes the skill invalid', async () => {
  const { operator } = harness;
  const { source } = await newMarket(operator, 'links', {
    ...marketplace({
      p: {
        linked: { 'references/a.md': 'the text of a', 'copy.md': { symlink: 'references/a.md' } },
        escaping: { 'passwd.md': { symlink: '/etc/passwd' } },
        climbing: { 'other.md': { symlink: '../linked/references/a.md' } },
        dangling: { 'gone.md': { symlink: 'nothing.md' } },
      },
    }),
    'plugins/p/skills/alias': { symlink: 'linked' },
  });
  const { status } = await waitReady(operator.k8s, operator.skill('links.p.linked'));
  const key = `packages/${operator.namespace}/${status.served.digest}/manifest.json`;
  const { uid } =
    (await operator.k8s.get({ apiVersion: 'v1', kind: 'Namespace', name: operator.account.namespace }))?.metadata ?? {};
  const manifest = JSON.parse(
    (await readObject(operator.info.s3, operator.bucket, `v1/${uid}/${key}`)).toString('utf8'),
  );
  const sums = Object.fromEntries(manifest.files.map((file: Record<string, string>) => [file.path, file.sha256]));
  expect(sums['copy.md']).toBe(sums['references/a.md']);
  for (const [name, path] of [
    ['escaping', 'passwd.md'],
    ['climbing', 'other.md'],
    ['dangling', 'gone.md'],
  ]) {
    const bad = await waitNotReady(operator.k8s, operator.skill(`links.p.${name}`), 'Invalid');
    expect(bad.status.violations, name).toMatchObject([{ code: 'SymlinkInvalid', path }]);
  }
  expect((await waitReady(operator.k8s, source)).status.problems).toMatchObject([
    { path: 'plugins/p/skills/alias', reason: 'SymlinkNotSupported' },
  ]);
});

test('include and exclude choose by <plugin>/<skill>, and a change of them takes effect at once', async () => {
  const { operator } = harness;
  const files = marketplace({ docs: { 'in-a': {}, 'in-b': {} }, data: { 'in-c': {}, 'in-d': {} } });
  const { source } = await newMarket(operator, 'globs', files, {
    include: ['docs/*', 'data/in-c'],
    exclude: ['*/in-b'],
  });
  await waitSkills(operator, 'globs', ['docs.in-a', 'data.in-c']);
  await operator.k8s.patch(source, { spec: { include: ['data/*'], exclude: null } });
  await waitSkills(operator, 'globs', ['data.in-c', 'data.in-d']);
  await operator.k8s.patch(source, { spec: { include: ['data/(in-c)'] } });
  const stalled = await waitNotReady(operator.k8s, source, 'InvalidSpec');
  expect(condition(stalled, 'Stalled')?.message).toMatch(/include pattern/);
  await waitSkills(operator, 'globs', ['data.in-c', 'data.in-d']);
});

test('git-subdir takes plugins/ below its path; a path that is not there is PathNotFound and deletes nothing', async () => {
  const { operator } = harness;
  const files = { ...marketplace({ p: { sub: {} } }, 'teams/docs/'), ...marketplace({ p: { top: {} } }) };
  const { source, repository } = await newMarket(operator, 'root', files);
  const url = `${operator.info.git.httpUrl}/${repository.name}.git`;
  const subdir = { type: 'git-subdir', git: null, gitSubdir: { url, path: 'teams/docs' } };
  await operator.k8s.patch(source, { spec: subdir });
  const skills = await waitSkills(operator, 'root', ['p.sub']);
  expect(skills.get('p.sub')?.spec.path).toBe('plugins/p/skills/sub');
  await waitReady(operator.k8s, operator.skill('root.p.sub'));
  await operator.k8s.patch(source, { spec: { gitSubdir: { path: 'teams/none' } } });
  const stalled = await waitNotReady(operator.k8s, source, 'PathNotFound');
  expect(messageOf(stalled, 'Stalled')).toMatchInlineSnapshot(
    `"the commit has no directory "teams/none": correct spec.gitSubdir.path, or push the directory"`,
  );
  await waitSkills(operator, 'root', ['p.sub']);
});

test('github takes its repository from baseURL', async () => {
  const { operator } = harness;
  const { repository, source } = await newMarket(operator, 'hub', marketplace({ p: { hubbed: {} } }));
  const { origin } = new URL(operator.info.git.httpUrl);
  const github = { repository: `pub/${repository.name}`, baseURL: `${origin}/` };
  await operator.k8s.patch(source, { spec: { type: 'github', git: null, github } });
  const { metadata, status } = await waitReady(operator.k8s, source);
  expect([metadata.generation, status.observedGeneration]).toEqual([2, 2]);
  await waitReady(operator.k8s, operator.skill('hub.p.hubbed'));
});

test('a commit without any skill is Ready with a problem that says where skills belong', async () => {
  const { operator } = harness;
  const { source } = await newMarket(operator, 'none', { 'README.md': 'nothing here' });
  const { status } = await waitReady(operator.k8s, source);
  expect(status.problems).toMatchObject([{ path: 'plugins', reason: 'NoSkillsFound' }]);
});

test('a broken marketplace.json changes nothing', async () => {
  const { operator } = harness;
  await newMarket(operator, 'json', {
    ...marketplace({ p: { plain: {} } }),
    '.claude-plugin/marketplace.json': '{"plugins": [',
  });
  await waitReady(operator.k8s, operator.skill('json.p.plain'));
});

import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { blocks, page } from '../../support/markdown.ts';
import { examples, git, repository, spawnProgram, temporaryDirectory } from '../cli/helpers.ts';

interface Workflow {
  jobs: { validate: { steps: { run?: string; with?: Record<string, string> }[] } };
}
interface Pipeline {
  skills: { script: string[]; artifacts: { paths: string[] } };
}

const files = blocks(page('docs/guides/publishing.md'), 'yaml').flatMap((block) =>
  parseAllDocuments(block).map((document) => document.toJSON() as object),
);
const workflow = files.find((file) => (file as Partial<Workflow>).jobs) as Workflow;
const pipeline = files.find((file) => (file as Partial<Pipeline>).skills) as Pipeline;

/** It bundles the program and starts it four times. */
const TIMEOUT_MS = 5 * 60_000;

test(
  'the workflows of the publishing guide find what is invalid, and leave the reports that they name',
  async () => {
    await using temporary = await temporaryDirectory();
    const market = temporary.path;
    await cp(examples, market, { recursive: true });
    const bundle = ['scripts/build.ts', '--outdir', join(market, 'tools'), 'skillctl'];
    expect(await spawnProgram(process.execPath, bundle, { cwd: repository })).toMatchObject({ code: 0 });
    await git(market, 'init', '-q');
    await git(market, 'add', '.');

    // As both systems run a step: it ends at the first command that fails.
    const step = (script: string) => spawnProgram('bash', ['-eo', 'pipefail', '-c', script], { cwd: market });
    const { steps } = workflow.jobs.validate;
    const [annotate, report] = steps.flatMap(({ run }) => run ?? []);
    const annotated = await step(annotate ?? '');
    expect(annotated.code).toBe(1);
    expect(annotated.out).toMatch(/^::error file=plugins\/media\/skills\/image-contact-sheet\/SKILL\.md,line=\d+/m);
    expect(await step(report ?? '')).toMatchObject({ code: 0 });
    const upload = steps.find((one) => one.with?.sarif_file)?.with?.sarif_file ?? '';
    const sarif = await step(`cat ${upload}`);
    expect(JSON.parse(sarif.out)).toMatchObject({
      version: '2.1.0',
      runs: [{ tool: { driver: { name: 'skillctl' } } }],
    });

    const piped = await step(pipeline.skills.script.join('\n'));
    expect(piped.code).toBe(1);
    expect(piped.out).toContain('1 invalid');
    const artifact = await step(`cat ${pipeline.skills.artifacts.paths.join(' ')}`);
    expect(JSON.parse(artifact.out)).toHaveProperty('skills');
  },
  TIMEOUT_MS,
);

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import manifest from '../../../package.json' with { type: 'json' };
import { page, ROOT } from '../../support/markdown.ts';

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const version = (path: string, pattern: RegExp): string => pattern.exec(read(path))?.[1] ?? `nothing in ${path}`;

describe('docs/guides/operations.md', () => {
  test('says of every alert of the chart what to do, in the order of the chart, and of no other', () => {
    const { rules } = parse(read('charts/skill-operator/files/alerts.yaml')) as { rules: { alert: string }[] };
    const rows = [...page('docs/guides/operations.md').text.matchAll(/^\| `(SkillOperator\w+)` \| (.+) \| (.+) \|$/gm)];
    expect(rows.map(([, alert]) => alert)).toEqual(rules.map(({ alert }) => alert));
    expect(rows.filter(([, , means = '', todo = '']) => means.length < 10 || todo.length < 10)).toEqual([]);
  });
});

describe('docs/versioning.md', () => {
  const { text } = page('docs/versioning.md');

  test('names the Kubernetes that the tests run and the oldest that the chart takes', () => {
    const chart = parse(read('charts/skill-operator/Chart.yaml')) as { kubeVersion: string; version: string };
    const oldest = /^>=(\d+\.\d+)\.0/.exec(chart.kubeVersion)?.[1];
    expect(text).toContain(`| needed | ${oldest} or newer`);
    expect(text).toContain(`| ${version('test/cluster/kube/go.mod', /k8s\.io\/kubernetes v([\d.]+)/)}: API server`);
    expect(page('docs/guides/install.md').text).toContain(`Kubernetes ${oldest} or newer`);
    expect(chart.version).toBe(manifest.version);
  });

  test('names the Kaniko that the tests run', () => {
    expect(text).toContain(`Kaniko ${version('test/cluster/kaniko/go.mod', /kaniko v([\d.]+)/)}`);
  });
});

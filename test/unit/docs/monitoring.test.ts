import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { dashboard } from '../../../scripts/lib/chart/dashboard.ts';
import { boundedLabel, METRICS } from '../../../src/base/metrics.catalogue.ts';
import { createMetrics } from '../../../src/base/metrics.ts';
import { page, ROOT } from '../../support/markdown.ts';
import { readPromql } from '../../support/promql.ts';

interface Rule {
  alert: string;
  expr: string;
  for?: string;
  labels: { severity: string };
  annotations: { summary: string; description: string };
}

const text = readFileSync(join(ROOT, 'charts/skill-operator/files/alerts.yaml'), 'utf8');
const { rules } = parse(text.replaceAll('$MEMORY_MIB', '768')) as { rules: Rule[] };
const panels = (
  JSON.parse(dashboard()) as { panels: { title: string; targets: { expr: string; legendFormat: string }[] }[] }
).panels;
/** Where it is asked → the expression. */
const queries: [string, string][] = [
  ...rules.map(({ alert, expr }): [string, string] => [alert, expr]),
  ...panels.flatMap(({ title, targets }) => targets.map(({ expr }): [string, string] => [title, expr])),
];
/** Labels that Prometheus itself adds. */
const TARGET = ['job', 'namespace', 'pod', 'le'];

/** Metric of the exposition → its labels. */
async function exposed(): Promise<Map<string, string[]>> {
  const names = [...(await createMetrics().render()).matchAll(/^# TYPE (\S+) (\S+)$/gm)];
  const found = new Map<string, string[]>([['up', []]]);
  for (const [, name = '', type] of names) {
    const labels = name in METRICS ? Object.keys(METRICS[name as keyof typeof METRICS].labels) : [];
    found.set(type === 'histogram' ? `${name}_bucket` : name, labels);
  }
  return found;
}

describe('alerts and dashboard', () => {
  test.each(queries)('%s asks for metrics, labels and values that there are', async (_, expr) => {
    const known = await exposed();
    const { selectors, grouped } = readPromql(expr);
    expect(selectors.length).toBeGreaterThan(0);
    for (const { name, matchers } of selectors) {
      expect([...known.keys()]).toContain(name);
      const labels = [...TARGET, ...(known.get(name) ?? [])];
      for (const label of [...Object.keys(matchers), ...grouped])
        expect(labels, `${name} has ${label}`).toContain(label);
      expect(Object.keys(matchers)).toEqual(expect.arrayContaining(['job', 'namespace']));
      for (const [label, value] of Object.entries(matchers)) {
        const values = (METRICS as Record<string, { labels: Record<string, readonly string[] | RegExp> }>)[name]
          ?.labels[label];
        if (Array.isArray(values)) expect(values).toContain(value);
      }
    }
  });

  test('a legend names labels that the query keeps', () => {
    for (const { targets } of panels) {
      for (const { expr, legendFormat } of targets) {
        const named = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label);
        expect(readPromql(expr).grouped).toEqual(expect.arrayContaining(named));
      }
    }
  });

  test('every alert has a severity, what happened, and what to do', () => {
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
    for (const { alert, labels, annotations, for: lasts = '1m' } of rules) {
      expect(alert).toMatch(/^SkillOperator[A-Z]\w+$/);
      expect(['warning', 'critical']).toContain(labels.severity);
      expect(lasts).toMatch(/^\d+[mh]$/);
      expect(Math.min(annotations.summary.length, annotations.description.length)).toBeGreaterThan(15);
    }
  });
});

describe('the parser of the test', () => {
  test.each([
    'rate(a{x="y"})',
    'a{x="y"}[5m]',
    'sum by (a) (b{c="d"}',
    'a{x=}',
    'frobnicate(a{x="y"})',
    'a{x="y"} >',
    'a{x="y"} b',
    '§',
  ])('refuses %s', (expr) => {
    expect(() => readPromql(expr)).toThrow();
  });
});

describe('the catalogue', () => {
  test('is what is exposed, beside the process', async () => {
    const names = [...(await createMetrics().render()).matchAll(/^# HELP (\w+) /gm)].map(([, name = '']) => name);
    expect(names.filter((name) => !/^(nodejs|process)_/.test(name))).toEqual(Object.keys(METRICS));
  });

  test('a page names no metric that there is not', async () => {
    const known = new Set([...(await exposed()).keys()].map((name) => name.replace(/_bucket$/, '')));
    const named = ['operations', 'store', 'webhooks', 'high-availability', 'configuration'].flatMap((name) =>
      [
        ...page(`docs/guides/${name}.md`).text.matchAll(
          /`((?:skill_operator|workqueue|controller_runtime|rest_client)_\w+)`/g,
        ),
      ].map(([, metric = '']) => metric),
    );
    expect(named.filter((name) => !known.has(name))).toEqual([]);
    expect(named.length).toBeGreaterThan(2);
  });

  test('bounds every label: what nobody foresaw is counted as other', async () => {
    const metrics = createMetrics();
    metrics.add('skill_operator_git_errors_total', { operation: 'fetch', reason: 'team/pdf: not found' });
    metrics.add('rest_client_requests_total', { method: 'patch', code: 'https://secret.example' });
    metrics.blocked('EngineSuspect.team-a', true);
    metrics.webhookDelivery('evil.example.com/x', 'refused');
    const lines = (await metrics.render()).split('\n').filter((line) => line.includes('other'));
    expect(lines).toMatchInlineSnapshot(`
      [
        "rest_client_requests_total{method="patch",code="other"} 1",
        "skill_operator_git_errors_total{operation="fetch",reason="other"} 1",
        "skill_operator_blocked{block="other"} 1",
        "skill_operator_webhook_deliveries_total{host="other",result="refused"} 1",
      ]
    `);
    expect(boundedLabel(/^\d{1,3}$/, '404')).toBe('404');
  });
});

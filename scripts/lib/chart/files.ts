import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { networkPolicy } from '../../../src/build/network.ts';
import { argoConfigMap } from './argo.ts';
import { dashboard } from './dashboard.ts';
import { chartReadme } from './readme.ts';
import { valuesSchema } from './schema.ts';

const HEADER = '# Generated from src/build/network.ts by `make generate`. Do not edit.\n';

/**
 * Text of every generated file of the chart and of examples/gitops, by path.
 * @param crds Text of the CRDs by file name; the chart gets copies, because Helm reads no file outside a chart.
 */
export function chartFiles(root: string, crds: ReadonlyMap<string, string>): Map<string, string> {
  const chart = join(root, 'charts', 'skill-operator');
  const read = (name: string) => readFileSync(join(chart, name), 'utf8');
  const policy = networkPolicy({ namespace: 'skill-operator-builds', network: { egress: [] } });
  const files = new Map([
    [join(chart, 'values.schema.json'), valuesSchema()],
    [join(chart, 'README.md'), chartReadme(parse(read('Chart.yaml')), read('values.yaml'))],
    [join(chart, 'files', 'dashboard.json'), dashboard()],
    [join(chart, 'files', 'build-network-policy.yaml'), HEADER + stringify(policy, { aliasDuplicateObjects: false })],
    [join(root, 'argocd', 'argocd-cm.yaml'), argoConfigMap(join(root, 'argocd'))],
  ]);
  for (const [name, text] of crds) files.set(join(chart, 'files', 'crds', name), text);
  return files;
}

import { isMap, isScalar, type Pair, parseDocument } from 'yaml';

/** One value of values.yaml with the comment `# -- …` above it. */
interface Row {
  key: string;
  fallback: string;
  text: string;
}

const MARK = '-- ';

/** The comment that belongs to a value; other comments of values.yaml are for its reader alone. */
function textOf(comment: string | null | undefined): string {
  const lines = (comment ?? '').split('\n').map((line) => line.trim());
  const from = lines.findLastIndex((line) => line.startsWith(MARK));
  return from < 0 ? '' : lines.slice(from).join(' ').slice(MARK.length).trim();
}

const shown = (value: unknown): string => `\`${JSON.stringify(value)}\``;

/** A map with a comment of its own is one row; without one, its keys are rows. */
function rowsOf(pairs: readonly Pair[], prefix: string, firstComment: string | null | undefined): Row[] {
  return pairs.flatMap((pair, index) => {
    if (!isScalar(pair.key)) return [];
    const key = `${prefix}${pair.key.value}`;
    const text = textOf(pair.key.commentBefore ?? (index === 0 ? firstComment : undefined));
    if (isMap(pair.value) && pair.value.items.length > 0 && text === '')
      return rowsOf(pair.value.items as Pair[], `${key}.`, pair.value.commentBefore);
    const value = isScalar(pair.value) ? pair.value.value : (pair.value as { toJSON(): unknown }).toJSON();
    return [{ key, fallback: shown(value), text }];
  });
}

/** The table of all values, as Markdown; a value without a comment is an error. */
function valuesTable(yaml: string): string {
  const { contents } = parseDocument(yaml);
  if (!isMap(contents)) throw new Error('values.yaml must be a mapping');
  const rows = rowsOf(contents.items as Pair[], '', contents.commentBefore);
  const bare = rows.filter(({ text }) => text === '').map(({ key }) => key);
  if (bare.length > 0) throw new Error(`values.yaml says nothing of ${bare.join(', ')}; write "# -- …" above`);
  const cell = (text: string) => text.replaceAll('|', '\\|');
  return [
    '| value | default | meaning |',
    '|---|---|---|',
    ...rows.map(({ key, fallback, text }) => `| \`${key}\` | ${cell(fallback)} | ${cell(text)} |`),
  ].join('\n');
}

/** README.md of the chart. */
export function chartReadme(
  chart: { version: string; description: string; kubeVersion: string },
  yaml: string,
): string {
  return `# Chart skill-operator

<!-- Generated from values.yaml by \`make generate\`. Do not edit. -->

${chart.description}. Version ${chart.version}, for Kubernetes ${chart.kubeVersion.replace(/-0$/, '')}.

\`\`\`sh
kubectl create namespace skill-operator-system
kubectl -n skill-operator-system create secret generic skill-store \\
  --from-literal=accessKey=… --from-literal=secretKey=…
helm install skill-operator charts/skill-operator --namespace skill-operator-system \\
  --set store.existingSecret=skill-store \\
  --set config.store.endpoint=https://minio.example.com --set config.store.bucket=skills
helm test skill-operator --namespace skill-operator-system
\`\`\`

To try it out without an S3 server of your own: \`--set bundledS3.enabled=true\` instead of the three other settings.

How to upgrade, go back and uninstall: [docs/guides/install.md](../../docs/guides/install.md). With Argo CD or Flux: [docs/guides/gitops.md](../../docs/guides/gitops.md).

## Values

A value that does not fit is refused by \`values.schema.json\`, with its name. The settings below \`config\` are those of
[docs/guides/configuration.md](../../docs/guides/configuration.md), checked by the same schema.

${valuesTable(yaml)}
`;
}

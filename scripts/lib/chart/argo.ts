import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Document, Scalar, stringify } from 'yaml';

const HEADER = `# Generated from argocd/*.lua by \`make generate\`. Do not edit.
# What Argo CD needs to know about the two kinds: kubectl -n argocd patch configmap argocd-cm --patch-file argocd/argocd-cm.yaml
`;

/** The actions of each kind. */
const KINDS = {
  MarketplaceSource: ['reconcile', 'suspend', 'resume'],
  Skill: ['reconcile', 'suspend', 'resume', 'rebuild'],
} as const;

/** Text of argocd-cm.yaml out of the Lua files of a folder. */
export function argoConfigMap(folder: string): string {
  const lua = (name: string) => readFileSync(join(folder, `${name}.lua`), 'utf8');
  const data: Record<string, string> = {};
  for (const [kind, actions] of Object.entries(KINDS)) {
    data[`resource.customizations.health.skills.tfrobot.io_${kind}`] = lua('health');
    const customization = {
      'discovery.lua': lua('actions/discovery'),
      definitions: actions.map((name) => ({ name, 'action.lua': lua(`actions/${name}`) })),
    };
    data[`resource.customizations.actions.skills.tfrobot.io_${kind}`] = stringify(customization, { lineWidth: 0 });
  }
  const document = new Document({ data });
  for (const key of Object.keys(data)) {
    const scalar = document.getIn(['data', key], true);
    if (scalar instanceof Scalar) scalar.type = Scalar.BLOCK_LITERAL;
  }
  return HEADER + document.toString({ lineWidth: 0 });
}

import { type Diagnostic, diagnosticsOf, type ValidateResult } from '../result.ts';
import { annotatedFile } from './github.ts';

/** A rule as SARIF lists it, from the catalogue of violations or of reasons. */
export interface SarifRule {
  id: string;
  level: 'error' | 'warning';
  summary: string;
  fix?: string;
}

/** A relative URI reference (RFC 3986) of a path: each segment percent-encoded. */
const toUri = (path: string): string => path.toWellFormed().split('/').map(encodeURIComponent).join('/');

function ruleObject(rule: SarifRule): object {
  return {
    id: rule.id,
    name: rule.id,
    shortDescription: { text: rule.summary },
    ...(rule.fix ? { help: { text: rule.fix } } : {}),
    defaultConfiguration: { level: rule.level },
  };
}

function resultObject(diagnostic: Diagnostic, ruleIndex: number): object {
  const region = {
    // Code scanning drops results without a line; a rule about a whole file points at its first.
    startLine: diagnostic.line ?? 1,
    ...(diagnostic.column === undefined ? {} : { startColumn: diagnostic.column }),
  };
  const artifactLocation = { uri: toUri(annotatedFile(diagnostic)), uriBaseId: '%SRCROOT%' };
  return {
    ruleId: diagnostic.code,
    ...(ruleIndex < 0 ? {} : { ruleIndex }),
    level: diagnostic.level,
    message: { text: diagnostic.hint ? `${diagnostic.message}\nFix: ${diagnostic.hint}` : diagnostic.message },
    locations: [{ physicalLocation: { artifactLocation, region } }],
  };
}

/** A SARIF 2.1.0 log with one run; `rules` is the whole catalogue, paths are relative to the current directory. */
export function formatSarif(result: ValidateResult, rules: SarifRule[], version: string): string {
  const indexOf = new Map(rules.map((rule, index) => [rule.id, index]));
  const log = {
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [
      {
        tool: { driver: { name: 'skillctl', version, rules: rules.map(ruleObject) } },
        // Columns of findings count as editors do.
        columnKind: 'utf16CodeUnits',
        results: diagnosticsOf(result).map((one) => resultObject(one, indexOf.get(one.code) ?? -1)),
      },
    ],
  };
  return `${JSON.stringify(log, undefined, 2)}\n`;
}

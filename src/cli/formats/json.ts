import type { ValidateResult } from '../result.ts';

/** One JSON document `{skills, problems}` (result.ts says the fields), indented, with a line end. */
export const formatJson = (result: ValidateResult): string => `${JSON.stringify(result, undefined, 2)}\n`;

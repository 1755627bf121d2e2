/** One CEL rule of a schema node, as `x-kubernetes-validations` holds it. */
export interface CelRule {
  rule: string;
  message?: string;
  messageExpression?: string;
  reason?: 'FieldValueInvalid' | 'FieldValueForbidden' | 'FieldValueRequired' | 'FieldValueDuplicate';
}

/** Schema annotation with CEL rules, for zod's `.meta()`. */
export const cel = (...rules: CelRule[]) => ({ 'x-kubernetes-validations': rules });

/** Rules of a Git URL: https, http or ssh; no userinfo but a user name in ssh URLs; nothing that a command line could take for an option. */
export const GIT_URL_RULES: CelRule[] = [
  {
    rule: "self.matches('^(https|http|ssh)://')",
    message:
      'must start with https://, http:// or ssh://; for git@host:path type ssh://git@host/path (ext::, file: and local paths are refused)',
  },
  {
    rule: "!self.matches('^https?://[^/?#]*@')",
    message:
      'must not carry a user name or password; put username and password into a Secret and name it in secretRef.name',
  },
  {
    rule: "!self.matches('^ssh://[^/?#]*:[^/?#]*@')",
    message:
      'must not carry a password; keep the user name alone (ssh://git@host/path) and put identity and known_hosts into the Secret of secretRef.name',
  },
  {
    rule: "!self.matches('^(https|http|ssh)://') || self.matches('^(https?://|ssh://)([^/?#]*@)?([A-Za-z0-9][A-Za-z0-9.-]*|\\\\[[0-9A-Fa-f:.]+\\\\])(:[0-9]{1,5})?(/|$)')",
    message: 'must name a host that starts with a letter or a digit, such as https://git.example.com/team/skills.git',
  },
  {
    rule: "!self.matches('^ssh://[^/?#]*@') || self.matches('^ssh://[A-Za-z0-9_][A-Za-z0-9._-]*(:[^/?#]*)?@')",
    message: 'must have a user name of letters, digits, ".", "_" and "-" that starts with a letter, a digit or "_"',
  },
  {
    rule: "!self.matches('^(https|http|ssh)://') || !self.matches('[?#\\\\\\\\]|[\\\\x00-\\\\x20\\\\x7f]|://[^/]*/([^/]*/)*-|://.*//|/[.][.](/|$)')",
    message:
      'must not contain "?", "#", "\\", blanks, control characters, "..", "//" in the path, or a path part that starts with "-"',
  },
];

/** Rules of a clean relative path. */
export const PATH_RULES: CelRule[] = [
  {
    rule: "!self.startsWith('-')",
    message: 'must not start with "-"; type the path of the directory, such as teams/docs',
  },
  {
    rule: "self.split('/').all(p, p != '' && p != '.' && p != '..') && !self.matches('[\\\\x00-\\\\x1f\\\\x7f\\\\\\\\]')",
    message:
      'must be a relative path without leading or trailing "/", without "." or ".." parts, backslashes or control characters, such as teams/docs',
  },
];

const REF_MESSAGE =
  'without a leading "-", blanks, control characters, "..", "@{" or any of ~ ^ : ? * [ \\ , and not ending in "/", "." or ".lock"';

const REF_CHARACTERS =
  "!self.matches('^[-/.]|[\\\\x00-\\\\x20\\\\x7f~^:?*\\\\[\\\\\\\\]|[.][.]|@[{]|//|/[.]|[./]$|[.]lock(/|$)')";

/** Rules of a branch or tag name (git-check-ref-format, and never an option). */
export const refNameRules = (what: string, example: string): CelRule[] => [
  { rule: REF_CHARACTERS, message: `must be a ${what} name such as ${example}, ${REF_MESSAGE}` },
];

/** Rules of a full ref name below refs/. */
export const FULL_REF_RULES: CelRule[] = [
  { rule: REF_CHARACTERS, message: `must be a full ref name such as refs/pull/7/head, ${REF_MESSAGE}` },
  { rule: "self.startsWith('refs/')", message: 'must start with refs/, such as refs/heads/main or refs/pull/7/head' },
];

/** Rules of a Go duration between two bounds, both inclusive. */
export const durationRules = (min: string, max: string, example: string): CelRule[] => [
  {
    rule: `self.matches('^([0-9]{1,7}([.][0-9]{1,3})?(ms|s|m|h))+$') && duration(self) >= duration('${min}') && duration(self) <= duration('${max}')`,
    message: `must be a duration from ${min} to ${max}, such as ${example}`,
  },
];

import type { SkillTree } from '../../../src/protocol/types.ts';
import { file, link, rawSkillMd, skillMd, tree, unread } from './support.ts';

/** What is validated, and the findings that it gives: `Code path:line:column`, warnings with `~`. */
export interface Case {
  title: string;
  tree: SkillTree;
  findings: string[];
}

const KIB = 1024;
const MIB = 1024 * KIB;
const c = (title: string, input: SkillTree, ...findings: string[]): Case => ({ title, tree: input, findings });
const bytes = (...values: (number | string)[]): Uint8Array =>
  Buffer.concat(values.map((v) => (typeof v === 'string' ? Buffer.from(v) : Buffer.from([v]))));
const many = (n: number) => Array.from({ length: n }, (_, i) => file(`data/${i}.txt`, 'x'));
const FM = '---\nname: pdf\ndescription: d\n---\n';
const LFS = 'version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n';
const runtime = (value: string) => skillMd(`runtime: ${value}`);
const cube = file('.cubesandbox.dockerfile', 'FROM scratch\n');
const e2b = file('.e2b.dockerfile', 'FROM scratch\n');

const SKILL_MD_CASES: Case[] = [
  c('a minimal skill is valid', tree(skillMd())),
  c('a skill without SKILL.md', tree(file('README.md', 'x')), 'SkillMdMissing'),
  c('skill.md instead of SKILL.md', tree(file('skill.md', FM)), 'SkillMdMissing', '~FileNameWrongCase skill.md'),
  c(
    'skill.md next to SKILL.md',
    tree(skillMd(), file('skill.md', 'x')),
    'PathCollision skill.md',
    '~FileNameWrongCase skill.md',
  ),
  c('an empty directory', tree(), 'SkillMdMissing'),
  c('SKILL.md of 1 MiB', tree(file('SKILL.md', FM + 'x'.repeat(MIB - FM.length)))),
  c(
    'SKILL.md of 1 MiB and one byte',
    tree(file('SKILL.md', FM + 'x'.repeat(MIB - FM.length + 1))),
    'SkillMdTooLarge SKILL.md',
  ),
  c('SKILL.md too large to be read', tree(unread('SKILL.md', 50 * MIB)), 'SkillMdTooLarge SKILL.md'),
  c('invalid UTF-8 in the body', tree(file('SKILL.md', bytes(FM, 'a\n', 0xff, '\n'))), 'SkillMdNotUtf8 SKILL.md:6'),
  c('a UTF-16 file', tree(file('SKILL.md', bytes(0xff, 0xfe, '-'))), 'SkillMdNotUtf8 SKILL.md:1'),
  c('an encoded surrogate', tree(file('SKILL.md', bytes(FM, 0xed, 0xa0, 0x80))), 'SkillMdNotUtf8 SKILL.md:5'),
  c('NUL in the body', tree(file('SKILL.md', `${FM}a\0b`)), 'SkillMdNulCharacter SKILL.md:5:2'),
  c('NUL in a value', tree(rawSkillMd('name: pdf\ndescription: a\0b')), 'SkillMdNulCharacter SKILL.md:3:15'),
  c('CRLF line ends', tree(file('SKILL.md', FM.replaceAll('\n', '\r\n')))),
  c(
    'a lone CR in the frontmatter',
    tree(rawSkillMd('name: pdf\rdescription: d')),
    'SkillMdLoneCarriageReturn SKILL.md:2:10',
  ),
  c('a lone CR in the body', tree(file('SKILL.md', `${FM}a\rb`)), 'SkillMdLoneCarriageReturn SKILL.md:5:2'),
  c('one BOM', tree(file('SKILL.md', `\ufeff${FM}`)), '~ByteOrderMark SKILL.md:1:1'),
  c(
    'two BOMs',
    tree(file('SKILL.md', `\ufeff\ufeff${FM}`)),
    'FrontmatterMissing SKILL.md:1:1',
    '~ByteOrderMark SKILL.md:1:1',
    '~InvisibleCharacter SKILL.md:1:2',
  ),
  c(
    'zero-width and bidi characters',
    tree(file('SKILL.md', `${FM}a\u200bb\u202ec\u200b`)),
    '~InvisibleCharacter SKILL.md:5:2',
    '~InvisibleCharacter SKILL.md:5:4',
  ),
  c('hidden tag characters', tree(file('SKILL.md', `${FM}\u{e0041}\u{e0042}`)), '~InvisibleCharacter SKILL.md:5:1'),
  c('joiners of an emoji and of Persian are spelling', tree(file('SKILL.md', `${FM}👩‍💻 👩🏽‍🚀 می‌خواهم`))),
];

const FENCE_CASES: Case[] = [
  c('no frontmatter', tree(file('SKILL.md', '# PDF\n')), 'FrontmatterMissing SKILL.md:1:1'),
  c('an empty file', tree(file('SKILL.md', '')), 'FrontmatterMissing SKILL.md:1:1'),
  c('a blank line before the fence', tree(file('SKILL.md', `\n${FM}`)), 'FrontmatterMissing SKILL.md:1:1'),
  c('a blank before the fence', tree(file('SKILL.md', ` ${FM}`)), 'FrontmatterMissing SKILL.md:1:1'),
  c(
    'text after the opening fence',
    tree(file('SKILL.md', `--- yaml\n${FM.slice(4)}`)),
    'FrontmatterMissing SKILL.md:1:1',
  ),
  c('four hyphens open nothing', tree(file('SKILL.md', `-${FM}`)), 'FrontmatterMissing SKILL.md:1:1'),
  c('no closing fence', tree(file('SKILL.md', FM.slice(0, -4))), 'FrontmatterUnclosed SKILL.md:1'),
  c(
    'an indented fence does not close',
    tree(file('SKILL.md', '---\nname: pdf\ndescription: d\n ---\n')),
    'FrontmatterUnclosed SKILL.md:1',
  ),
  c('only the opening fence', tree(file('SKILL.md', '---')), 'FrontmatterUnclosed SKILL.md:1'),
  c('blanks after the closing fence', tree(file('SKILL.md', FM.replace(/---\n$/, '--- \t\n')))),
  c('the closing fence is the last byte', tree(file('SKILL.md', FM.slice(0, -1)))),
  c('--- inside a value is content', tree(rawSkillMd('name: pdf\ndescription: |\n  a\n  ---\n  b --- c'))),
  c('frontmatter of 64 KiB', tree(skillMd(`#${'x'.repeat(64 * KIB - 42)}`))),
  c('frontmatter above 64 KiB', tree(skillMd(`#${'x'.repeat(64 * KIB)}`)), 'FrontmatterTooLarge SKILL.md:1'),
  c('empty frontmatter', tree(file('SKILL.md', '---\n---\n')), 'FrontmatterEmpty SKILL.md:2:1'),
  c('only a comment', tree(rawSkillMd('# name: pdf')), 'FrontmatterEmpty SKILL.md:2:1'),
  c('an empty mapping', tree(rawSkillMd('{}')), 'FrontmatterEmpty SKILL.md:2:1'),
  c('a list', tree(rawSkillMd('- name: pdf')), 'FrontmatterNotMapping SKILL.md:2:1'),
  c('no blank after the colon', tree(rawSkillMd('name:pdf')), 'FrontmatterNotMapping SKILL.md:2:1'),
  c('JSON is YAML', tree(rawSkillMd('{"name": "pdf", "description": "d"}'))),
];

const described = (value: string) => tree(rawSkillMd(`name: pdf\ndescription: ${value}`));
const YAML_CASES: Case[] = [
  c('an unquoted colon', described('Use when: x'), 'YamlColonUnquoted SKILL.md:3:14'),
  c('a colon at the end', described('trailing:'), 'YamlColonUnquoted SKILL.md:3:14'),
  c('a broken value in an unknown field', tree(skillMd('argument-hint: [a] [b]')), 'YamlSyntaxInvalid SKILL.md:4:20'),
  c('a value that starts with @', described('@x'), 'YamlSyntaxInvalid SKILL.md:3:14'),
  c('a value that starts with a backtick', described('`x`'), 'YamlSyntaxInvalid SKILL.md:3:14'),
  c('a value that starts with %', described('%x'), 'YamlSyntaxInvalid SKILL.md:3:14'),
  c('text after a quoted value', described('"q" then'), 'YamlSyntaxInvalid SKILL.md:3:18'),
  c('a quote that is not closed', described('"x'), 'YamlSyntaxInvalid SKILL.md:3:14'),
  c('a value that starts with *', described('*b*'), 'YamlAliasForbidden SKILL.md:3:14'),
  c(
    'an anchor and an alias',
    tree(skillMd('metadata:\n  a: &x 1\n  b: *x')),
    'YamlAliasForbidden SKILL.md:5:9',
    'YamlAliasForbidden SKILL.md:6:6',
  ),
  c('a value that starts with !', described('!important'), 'YamlTagUnknown SKILL.md:3:14'),
  c('a binary tag', tree(skillMd('license: !!binary aGk=')), 'YamlTagUnknown SKILL.md:4:19'),
  c('a core tag', tree(rawSkillMd('name: pdf\ndescription: !!str 12'))),
  c('a tab as indent', tree(skillMd('metadata:\n\ta: 1')), 'YamlTabIndent SKILL.md:5:1'),
  c('a tab after the colon', tree(rawSkillMd('name:\tpdf\ndescription: d'))),
  c('a key twice', tree(skillMd('name: pdf')), 'YamlKeyDuplicate SKILL.md:4:1'),
  c('a key twice inside metadata', tree(skillMd('metadata: {a: 1, b: 2, a: 3}')), 'YamlKeyDuplicate SKILL.md:4:24'),
  c('a list as key', tree(skillMd('? [a, b]\n: c')), 'YamlKeyInvalid SKILL.md:4:3'),
  c('a number as key inside metadata', tree(skillMd('metadata:\n  2024: x'))),
  c('a second document', tree(skillMd('...\nb: 1')), 'YamlMultipleDocuments SKILL.md:4:1'),
  c('a document end without a document after it', tree(skillMd('...')), 'YamlMultipleDocuments SKILL.md:4:1'),
  c('a second document on the line of its marker', tree(skillMd('--- x')), 'YamlMultipleDocuments SKILL.md:4:1'),
  c(
    'a version directive',
    tree(rawSkillMd('%YAML 1.1\n--- {name: pdf, description: yes}')),
    'YamlMultipleDocuments SKILL.md:2:1',
  ),
  c(
    'nesting beyond every use',
    tree(skillMd(`metadata: {a: ${'['.repeat(70)}${']'.repeat(70)}}`)),
    'YamlTooDeep SKILL.md:2',
  ),
  c('nesting that would overflow a stack', tree(skillMd(`metadata: ${'['.repeat(60_000)}`)), 'YamlTooDeep SKILL.md:2'),
  c(
    'two broken lines are both reported',
    tree(rawSkillMd('name: @a\ndescription: @b')),
    'YamlSyntaxInvalid SKILL.md:2:7',
    'YamlSyntaxInvalid SKILL.md:3:14',
  ),
];

const named = (name: string, directory = 'pdf') => ({
  ...tree(rawSkillMd(`name: ${name}\ndescription: d`)),
  directory,
});
const FIELD_CASES: Case[] = [
  c('no name', tree(rawSkillMd('description: d')), 'NameMissing SKILL.md:1'),
  c('an empty name', named(''), 'NameMissing SKILL.md:2:1'),
  c('a name of one character', named('a', 'a')),
  c('a name of 64 characters', named('a'.repeat(64), 'a'.repeat(64))),
  c('a name of 65 characters', named('a'.repeat(65), 'a'.repeat(65)), 'NameTooLong SKILL.md:2:7'),
  ...['my--skill', '-a', 'a-', 'PDF', 'a_b', 'meeting-sdk/linux', '技能', '../../evil', 'a b', 'ａ', 'a.b'].map(
    (name) => c(`the name ${name}`, named(`'${name}'`, name), 'NameInvalid SKILL.md:2:7'),
  ),
  c('a name with a line feed', named('"pdf\\n"'), 'NameInvalid SKILL.md:2:7', 'NameMismatchesDirectory SKILL.md:2:7'),
  c('another name than the directory', named('pdf-tools'), 'NameMismatchesDirectory SKILL.md:2:7'),
  c('a name in title case', named('PDF Tools'), 'NameInvalid SKILL.md:2:7', 'NameMismatchesDirectory SKILL.md:2:7'),
  c('a number as name', named('123', '123'), 'FieldNotString SKILL.md:2:7'),
  c('a boolean as name', named('true', 'true'), 'FieldNotString SKILL.md:2:7'),
  c('a quoted number as name', named('"123"', '123')),
  c('a mapping as name', named('{{name}}'), 'YamlKeyInvalid SKILL.md:2:8'),
  c('a list as name', named('[TODO]'), 'FieldNotString SKILL.md:2:7'),
  c('a name that YAML 1.1 takes for a boolean', named('on', 'on'), '~ValueAmbiguous SKILL.md:2:7'),
  c('no description', tree(rawSkillMd('name: pdf')), 'DescriptionMissing SKILL.md:1'),
  c('a null description', described(''), 'DescriptionMissing SKILL.md:3:1'),
  c('a blank description', described('"  "'), 'DescriptionBlank SKILL.md:3:14'),
  c('an empty description', described('""'), 'DescriptionBlank SKILL.md:3:14'),
  c('a description of 1,024 CJK characters', described('技'.repeat(1024))),
  c('a description of 1,024 emoji', described('🙂'.repeat(1024))),
  c('a description of 1,025 characters', described('x'.repeat(1025)), 'DescriptionTooLong SKILL.md:3:14'),
  c(
    'a description of 1,024 characters and one blank',
    described(`"${'x'.repeat(1024)} "`),
    'DescriptionTooLong SKILL.md:3:14',
  ),
  c('angle brackets in the description', described('for <label> elements')),
  c('a date as description', described('2024-01-01'), '~ValueAmbiguous SKILL.md:3:14'),
  c('a description cut by a comment', described('fix #12 bug'), '~ValueCutByComment SKILL.md:3:17'),
  c('a number sign inside a word', described('fix bug#12')),
  c('license and compatibility', tree(skillMd('license: MIT\ncompatibility: ""'))),
  c('a list as license', tree(skillMd('license: [MIT]')), 'FieldNotString SKILL.md:4:10'),
  c('a number as compatibility', tree(skillMd('compatibility: 3.11')), 'FieldNotString SKILL.md:4:16'),
  c('compatibility of 500 characters', tree(skillMd(`compatibility: ${'x'.repeat(500)}`))),
  c(
    'compatibility of 501 characters',
    tree(skillMd(`compatibility: ${'x'.repeat(501)}`)),
    'CompatibilityTooLong SKILL.md:4:16',
  ),
  c('nested metadata', tree(skillMd('metadata: {openclaw: {requires: {bins: [jq]}}, v: 1.0}'))),
  c('metadata as JSON text', tree(skillMd("metadata: '{}'")), 'MetadataNotMapping SKILL.md:4:11'),
  c('metadata as list', tree(skillMd('metadata: [a]')), 'MetadataNotMapping SKILL.md:4:11'),
  c('allowed-tools as text', tree(skillMd('allowed-tools: "Read, Bash(git add *)"'))),
  c('allowed-tools as list', tree(skillMd('allowed-tools: [Read, Grep]'))),
  c('allowed-tools as mapping', tree(skillMd('allowed-tools: {a: b}')), 'AllowedToolsInvalid SKILL.md:4:16'),
  c('a number among allowed-tools', tree(skillMd('allowed-tools: [1]')), 'AllowedToolsInvalid SKILL.md:4:16'),
  c(
    'optional fields without value',
    tree(skillMd('license:\ncompatibility: ~\nmetadata:\nallowed-tools: null\nruntime:')),
    '~FieldNull SKILL.md:4:1',
    '~FieldNull SKILL.md:5:1',
    '~FieldNull SKILL.md:6:1',
    '~FieldNull SKILL.md:7:1',
    '~FieldNull SKILL.md:8:1',
  ),
  c(
    'unknown fields',
    tree(skillMd('model: sonnet\nversion: 1.0')),
    '~FieldUnknown SKILL.md:4:1',
    '~FieldUnknown SKILL.md:5:1',
  ),
  c(
    'every broken field at once',
    tree(rawSkillMd('name: A\ndescription: ""\nruntime: bash\nlicense: 1')),
    'NameInvalid SKILL.md:2:7',
    'NameMismatchesDirectory SKILL.md:2:7',
    'DescriptionBlank SKILL.md:3:14',
    'RuntimeUnknown SKILL.md:4:10',
    'FieldNotString SKILL.md:5:10',
  ),
];

const RUNTIME_CASES: Case[] = [
  ...['prompt-only', 'cubesandbox::python', 'cubesandbox::node', 'e2b::python', 'e2b::node'].flatMap((value) => [
    c(`${value} without Dockerfile`, tree(runtime(value))),
    c(
      `${value} with a CubeSandbox Dockerfile`,
      tree(runtime(value), cube),
      'DockerfileForbidden .cubesandbox.dockerfile',
    ),
    c(`${value} with an E2B Dockerfile`, tree(runtime(value), e2b), 'DockerfileForbidden .e2b.dockerfile'),
  ]),
  c('cubesandbox with its Dockerfile', tree(runtime('cubesandbox'), cube)),
  c('cubesandbox without Dockerfile', tree(runtime('cubesandbox')), 'DockerfileMissing SKILL.md:4:10'),
  c('cubesandbox with the other Dockerfile', tree(runtime('cubesandbox'), e2b), 'DockerfileMissing SKILL.md:4:10'),
  c('e2b with its Dockerfile', tree(runtime('e2b'), e2b)),
  c('e2b with the other Dockerfile', tree(runtime('e2b'), cube), 'DockerfileMissing SKILL.md:4:10'),
  c('both Dockerfiles', tree(runtime('e2b'), cube, e2b), 'DockerfilesBoth .e2b.dockerfile'),
  c('a Dockerfile below the root is a plain file', tree(runtime('e2b::node'), file('docker/.e2b.dockerfile', 'x'))),
  c('a Dockerfile of 256 KiB', tree(runtime('e2b'), file('.e2b.dockerfile', 'x'.repeat(256 * KIB)))),
  c(
    'a larger Dockerfile',
    tree(runtime('e2b'), unread('.e2b.dockerfile', 256 * KIB + 1)),
    'DockerfileTooLarge .e2b.dockerfile',
  ),
  c('.skillenv with prompt-only', tree(skillMd(), file('.skillenv', 'A=1\n')), 'SkillenvForbidden .skillenv'),
  c('a list of runtimes', tree(runtime('[cubesandbox, e2b]')), 'RuntimeUnknown SKILL.md:4:10'),
  c('a number as runtime', tree(runtime('1')), 'RuntimeUnknown SKILL.md:4:10'),
  c('an empty runtime', tree(runtime('""')), 'RuntimeUnknown SKILL.md:4:10'),
  c('a runtime of another case', tree(runtime('E2B')), 'RuntimeUnknown SKILL.md:4:10'),
  c(
    'an unknown runtime with both Dockerfiles',
    tree(runtime('x'), cube, e2b),
    'DockerfilesBoth .e2b.dockerfile',
    'RuntimeUnknown SKILL.md:4:10',
  ),
];

const env = (content: string | Uint8Array, value = 'e2b::python') => tree(runtime(value), file('.skillenv', content));
const SKILLENV_CASES: Case[] = [
  c('literals, references, comments and blank lines', env('# a\n\nLOG_LEVEL=INFO\nTOKEN=\n')),
  c('.skillenv of 64 KiB', env(`A=${'x'.repeat(64 * KIB - 2)}`)),
  c('.skillenv above 64 KiB', env(`A=${'x'.repeat(64 * KIB - 1)}`), 'SkillenvTooLarge .skillenv'),
  c('.skillenv with BOM', env('\ufeffA=1'), 'SkillenvEncodingInvalid .skillenv:1'),
  c('.skillenv with invalid UTF-8', env(bytes('A=', 0xff)), 'SkillenvEncodingInvalid .skillenv:1'),
  c('.skillenv with NUL', env('A=\0'), 'SkillenvEncodingInvalid .skillenv:1'),
  c('.skillenv with CRLF', env('A=1\n\r\nB=1\r\n'), 'SkillenvCarriageReturn .skillenv:2'),
  c('a line without =', env('A=1\nsecret\n'), 'SkillenvLineInvalid .skillenv:2:1'),
  c('a key in lower case', env('token=1'), 'SkillenvKeyInvalid .skillenv:1:1'),
  c('export', env('export A=1'), 'SkillenvKeyInvalid .skillenv:1:1'),
  c('no key', env('=1'), 'SkillenvKeyInvalid .skillenv:1:1'),
  c('a key twice', env('A=1\nB=\nA='), 'SkillenvKeyDuplicate .skillenv:3:1'),
  c('a key of the platform', env('TFROBOT_SKILL_DIR=/x'), 'SkillenvKeyReserved .skillenv:1:1'),
  c(
    'PATH on CubeSandbox',
    env('PATH=/x\nLD_PRELOAD=x', 'cubesandbox::python'),
    'SkillenvKeyRefusedByEngine .skillenv:1:1',
    'SkillenvKeyRefusedByEngine .skillenv:2:1',
  ),
  c('PATH on E2B', env('PATH=/x')),
];

const PLACEHOLDER_CASES: Case[] = [
  c('the three placeholders', tree(skillMd('', '$TFROBOT_SKILL_DIR ${TFROBOT_SESSION_ID} `$TFROBOT_ROBOT_ID`\n'))),
  c(
    'an unknown placeholder',
    tree(skillMd('', '# a\nsee ${TFROBOT_FOO} and $TFROBOT_BAR')),
    'PlaceholderUnknown SKILL.md:6:5',
    'PlaceholderUnknown SKILL.md:6:24',
  ),
  c('the longest name counts', tree(skillMd('', '$TFROBOT_SKILL_DIR2')), 'PlaceholderUnknown SKILL.md:5:1'),
  c('a placeholder in lower case', tree(skillMd('', '$TFROBOT_skill_dir')), 'PlaceholderUnknown SKILL.md:5:1'),
  c('other dollars', tree(skillMd('', '$X $$ ${X} $ARGUMENTS $1 TFROBOT_FOO ${TFROBOT_FOO:-x}'))),
  c('a fenced block is not checked', tree(skillMd('', '```sh\n$TFROBOT_FOO\n```\n'))),
  c('the frontmatter is not checked', tree(skillMd('license: $TFROBOT_FOO'))),
  c('other files are not checked', tree(skillMd(), file('references/a.md', '$TFROBOT_FOO'))),
];

const FILE_CASES: Case[] = [
  c(
    'a link to a file of the skill',
    tree(skillMd(), link('CLAUDE.md', 'SKILL.md'), link('a/b.md', '../c/./d.md'), file('c/d.md', 'x')),
  ),
  c('SKILL.md as a link inside the skill', tree(link('SKILL.md', 'docs/pdf.md'), file('docs/pdf.md', FM))),
  c('a link out of the skill', tree(skillMd(), link('a.md', '../other/a.md')), 'SymlinkInvalid a.md'),
  c('a link out of the skill and back', tree(skillMd(), link('a.md', '../pdf/SKILL.md')), 'SymlinkInvalid a.md'),
  c('SKILL.md that leaves the skill', tree(link('SKILL.md', '../../../SKILL.md')), 'SymlinkInvalid SKILL.md'),
  c('an absolute link', tree(skillMd(), link('passwd', '/etc/passwd')), 'SymlinkInvalid passwd'),
  c('a dangling link', tree(skillMd(), link('a', 'b')), 'SymlinkInvalid a'),
  c('a link to a directory', tree(skillMd(), link('a', 'docs'), file('docs/x', 'x')), 'SymlinkInvalid a'),
  c('links to the root', tree(skillMd(), link('a', '.'), link('d/b', '..')), 'SymlinkInvalid a', 'SymlinkInvalid d/b'),
  c('links in a loop', tree(skillMd(), link('a', 'b'), link('b', 'a')), 'SymlinkInvalid a', 'SymlinkInvalid b'),
  c('a link to itself', tree(skillMd(), link('a', 'a')), 'SymlinkInvalid a'),
  c('a link through a link', tree(skillMd(), link('a', 'b'), link('b', 'SKILL.md'))),
  c('an empty link', tree(skillMd(), link('a', '')), 'SymlinkInvalid a'),
  c(
    'a link that would publish .skillenv',
    tree(runtime('e2b::node'), file('.skillenv', 'A=1'), link('env.txt', '.skillenv')),
    'SymlinkInvalid env.txt',
  ),
  c(
    'a link that would publish a nested protected file',
    tree(skillMd(), file('x/my.skillenv', 'A=1'), link('env.txt', 'x/my.skillenv')),
    'SymlinkInvalid env.txt',
  ),
  c('a submodule', tree(skillMd(), unread('vendor', 0, '160000')), 'SubmoduleNotSupported vendor'),
  c(
    'a link to a submodule',
    tree(skillMd(), unread('vendor', 0, '160000'), link('a', 'vendor')),
    'SymlinkInvalid a',
    'SubmoduleNotSupported vendor',
  ),
  c('a Git LFS pointer', tree(skillMd(), file('assets/a.png', LFS)), 'LfsPointer assets/a.png'),
  c('SKILL.md as a Git LFS pointer', tree(file('SKILL.md', LFS)), 'LfsPointer SKILL.md'),
  c('10,000 files', tree(skillMd(), ...many(9_999))),
  c('10,001 files', tree(skillMd(), ...many(10_000)), 'TooManyFiles'),
  c('files of more than 60 MiB', tree(skillMd(), unread('a.bin', 60 * MIB)), 'PackageTooLarge'),
  c('a file larger than the mirror holds', tree(skillMd(), unread('a.bin', -1)), 'PackageTooLarge a.bin'),
  c(
    'links that multiply a file beyond 60 MiB',
    tree(skillMd(), file('a.bin', new Uint8Array(31 * MIB)), link('b.bin', 'a.bin')),
    'PackageTooLarge',
  ),
  c('content that was not read', tree(skillMd(), unread('a.bin', 3)), 'ContentNotRead a.bin'),
  c('a path of 512 bytes', tree(skillMd(), file('é'.repeat(256), 'x'))),
  c('a path of 513 bytes', tree(skillMd(), file(`${'é'.repeat(256)}a`, 'x')), `PathTooLong ${'é'.repeat(256)}a`),
  c('a path of 32 levels', tree(skillMd(), file(`${'a/'.repeat(31)}b`, 'x'))),
  c('a path of 33 levels', tree(skillMd(), file(`${'a/'.repeat(32)}b`, 'x')), `PathTooDeep ${'a/'.repeat(32)}b`),
  c(
    'a path that is not UTF-8',
    tree(skillMd(), { ...file('caf\xe9', 'x'), rawPath: Buffer.from('636166e9', 'hex') }),
    'PathNotUtf8 café',
  ),
  c('a path with a line feed', tree(skillMd(), file('a\nb', 'x')), 'PathControlCharacter a\\nb'),
  c('a path that leaves the skill', tree(skillMd(), file('../a', 'x')), 'PathInvalid ../a'),
  c('an absolute path', tree(skillMd(), file('/a', 'x')), 'PathInvalid /a'),
  c('paths that differ in case', tree(skillMd(), file('a.md', 'x'), file('A.md', 'y')), 'PathCollision a.md'),
  c(
    'paths that differ in normalisation',
    tree(skillMd(), file('caf\u00e9', 'x'), file('cafe\u0301', 'y')),
    'PathCollision caf\u00e9',
  ),
  c('one path twice', tree(skillMd(), file('a', 'x'), file('a', 'y')), 'PathCollision a'),
  c(
    'a file where another path needs a directory',
    tree(skillMd(), file('a', 'x'), file('A/b', 'y')),
    'PathCollision A/b',
  ),
  c('SKILL.md deeper inside is a plain file', tree(skillMd(), file('examples/x/SKILL.md', 'x'))),
  c('other dot files are stored', tree(skillMd(), file('.gitignore', 'x'), file('.dockerignore', 'x'))),
  c(
    'files that usually hold secrets',
    tree(skillMd(), file('.env', 'A=1'), file('.env.example', 'A='), file('config/prod.env', 'A=1')),
    '~EnvFileIncluded .env',
    '~EnvFileIncluded config/prod.env',
  ),
  c(
    'official names that are misspelt',
    tree(runtime('e2b::node'), file('Skillenv', 'A=1'), file('.E2B.Dockerfile', 'x')),
    '~FileNameWrongCase .E2B.Dockerfile',
    '~FileNameWrongCase Skillenv',
  ),
];

/** Every rule of the protocol at work, one skill per case. */
export const CASES: readonly Case[] = [
  ...SKILL_MD_CASES,
  ...FENCE_CASES,
  ...YAML_CASES,
  ...FIELD_CASES,
  ...RUNTIME_CASES,
  ...SKILLENV_CASES,
  ...PLACEHOLDER_CASES,
  ...FILE_CASES,
];

// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders in braces are what is tested
import { CUBE_BASE } from '../../../src/protocol/dockerimages.ts';
import { DOCKERFILE_CASES } from './cases-dockerfile.ts';
import { bytes, type Case, testCase as c, FM, file, KIB, LFS, link, MIB, skillMd, tree, unread } from './support.ts';

const runtime = (value: string) => skillMd(`runtime: ${value}`);
const cube = file('.cubesandbox.dockerfile', `FROM ${CUBE_BASE}\n`);
const e2b = file('.e2b.dockerfile', 'FROM debian:12-slim\n');
const many = (n: number) => Array.from({ length: n }, (_, i) => file(`data/${i}.txt`, 'x'));

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
  c('a Dockerfile of 256 KiB', tree(runtime('e2b'), file('.e2b.dockerfile', 'FROM a:1\n#'.padEnd(256 * KIB, 'x')))),
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
    'a link that would put .skillenv into the tar',
    tree(runtime('e2b::node'), file('.skillenv', 'A=1'), link('x.skillenv', '.skillenv')),
    'SymlinkInvalid x.skillenv',
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

/** The rules about files, runtime, .skillenv and placeholders, one skill per case. */
export const FILE_RULE_CASES: readonly Case[] = [
  ...RUNTIME_CASES,
  ...DOCKERFILE_CASES,
  ...SKILLENV_CASES,
  ...PLACEHOLDER_CASES,
  ...FILE_CASES,
];

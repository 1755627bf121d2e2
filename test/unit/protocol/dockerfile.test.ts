// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables in braces are what is tested
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseDockerfile } from '../../../src/protocol/dockerfile.ts';
import { imageName } from '../../../src/protocol/dockerimages.ts';
import { file, skillMd, texts, validate } from './support.ts';

const e2b = (text: string) => validate(skillMd('runtime: e2b'), file('.e2b.dockerfile', text));
const cube = (text: string) => validate(skillMd('runtime: cubesandbox'), file('.cubesandbox.dockerfile', text));

it('tells an author which line to correct and which line to add', () => {
  const reports = [
    e2b('FROM debian:12 AS\nRUM a\nRUN a\n  && b\nRUN <<END\n'),
    e2b('ARG BASE\nFROM $BASE\n'),
    e2b('# escape=x\n'),
    e2b('FROM golang AS b\nFROM scratch\nUSER app\nCMD ["a"]\n'),
    e2b('FROM amazonlinux:2023\n'),
    cube('FROM python:3.12-slim\n'),
    cube('FROM ghcr.io/tencentcloud/cubesandbox-base:2026.16\nENTRYPOINT ["/app"]\n'),
    cube('FROM python:3.12-slim\nCOPY envd /usr/bin/envd\n'),
  ];
  expect(reports.flatMap(texts)).toMatchInlineSnapshot(`
    [
      "FROM takes an image, and a name after AS → write FROM <image> [AS <name>]",
      ""RUM" is not an instruction of a Dockerfile → did you mean RUN?",
      ""&&" is not an instruction of a Dockerfile → end the line before with \\ if it continues here, or start this line with an instruction such as RUN",
      "no line END ends the heredoc that starts here → add a line that is exactly END after its text",
      "the base image $BASE has no value, since builds get no arguments → give it a default before the first FROM: ARG <name>=<image>",
      ".e2b.dockerfile has no instruction → start with the base image: FROM debian:12-slim",
      "the escape character "x" is neither \\ nor \` → delete the line, or write # escape=\`",
      "E2B cannot start an image that is built on scratch: it needs the shell and packages of Debian, Ubuntu, Fedora, CentOS, Rocky Linux, AlmaLinux, Arch, Alpine or NixOS → use a distribution image there: FROM debian:12-slim",
      "the base image golang has no tag, so that the next build may get another one → name a release or a digest: FROM golang:<version> or FROM golang@sha256:<digest>",
      "E2B ignores USER; only ENV is kept in a sandbox → delete it, or keep it for the RUN lines that follow; the sandbox runs as "user" with sudo",
      "E2B ignores CMD; only ENV is kept in a sandbox → delete it; the script of the skill is started by the sandbox itself",
      "E2B is known to refuse the distribution of amazonlinux:2023: it takes Debian, Ubuntu, Fedora, CentOS, Rocky Linux, AlmaLinux, Arch, Alpine or NixOS → use such an image there: FROM debian:12-slim",
      "the image has no envd, which must answer on port 49983: its base python:3.12-slim is no image of CubeSandbox → add to the last stage: COPY --from=ghcr.io/tencentcloud/cubesandbox-base:2026.16 /usr/bin/envd /usr/local/bin/cube-entrypoint.sh /usr/bin/ and ENTRYPOINT ["/usr/bin/cube-entrypoint.sh"]",
      "this ENTRYPOINT replaces the one that starts envd on port 49983 → delete it and keep its program as CMD, or let its program start envd -port 49983 -isnotfc in the background",
      "nothing starts envd on port 49983: the image keeps the ENTRYPOINT of python:3.12-slim → add ENTRYPOINT ["<path>/cube-entrypoint.sh"] with the path that the file was copied to; CMD stays your own",
    ]
  `);
});

describe('parseDockerfile', () => {
  it('knows the stages, their names and what they come from', () => {
    const { stages } = parseDockerfile(
      'ARG V=12\nFROM debian:$V AS Base\nRUN a\nFROM base\nCOPY b c\nFROM debian:${V%2}\n',
    );
    expect(
      stages.map(({ index, name, line, from, instructions }) => ({ index, name, line, from, instructions })),
    ).toEqual([
      {
        index: 0,
        name: 'base',
        line: 2,
        from: { image: 'debian:12' },
        instructions: [{ keyword: 'RUN', args: 'a', line: 3 }],
      },
      {
        index: 1,
        name: undefined,
        line: 4,
        from: { stage: stages[0] },
        instructions: [{ keyword: 'COPY', args: 'b c', line: 5 }],
      },
      { index: 2, name: undefined, line: 6, from: 'unknown', instructions: [] },
    ]);
  });

  const pieces = fc.constantFrom(
    'FROM',
    'debian:12',
    'AS',
    'a',
    'COPY',
    '--from=a',
    '/',
    'RUN',
    '<<E',
    'E',
    'ARG',
    'A=$A$A',
    '${A:-b}',
    '\\',
    '"',
    "'",
    '#',
    ' ',
    '\n',
    '\\\n',
    '[',
    '`',
    '=',
  );
  it('takes any text, and puts every problem on a line of it', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(pieces, fc.string({ unit: 'binary' })), { maxLength: 80 }), (parts) => {
        const text = parts.join('');
        const lines = text.split('\n').length;
        for (const { line } of parseDockerfile(text).problems) {
          expect(line).toBeGreaterThanOrEqual(1);
          expect(line).toBeLessThanOrEqual(lines);
        }
        e2b(text);
        cube(text);
      }),
    );
  });

  const KIB = 1024;
  it.each([
    [
      'stages of stages',
      (n: number) =>
        `FROM a:1 AS s0\n${Array.from({ length: n / 40 }, (_, i) => `FROM s${i} AS s${i + 1}\nCOPY --from=${i} / /`).join('\n')}`,
    ],
    ['an ARG that doubles itself', (n: number) => `ARG A=aaaa\n${'ARG A=$A$A\n'.repeat(n / 12)}FROM $A`],
    [
      'many uses of a long ARG',
      (n: number) => `ARG A=${'a'.repeat(4000)}\n${`ARG B=${'$A'.repeat(500)}\n`.repeat(n / 1100)}FROM $B`,
    ],
    ['quotes that never close', (n: number) => `FROM a:1\nRUN ${'" \' '.repeat(n / 5)}`],
    ['backslashes', (n: number) => `FROM a:1\nCOPY ${'\\'.repeat(n)}`],
    ['heredocs without end', (n: number) => `FROM a:1\nRUN ${'<<E '.repeat(n / 4)}`],
    ['continued lines', (n: number) => `FROM a:1\nRUN ${'a \\\n'.repeat(n / 4)}`],
    ['unknown instructions', (n: number) => `FROM a:1\n${'fi\n'.repeat(n / 3)}`],
    ['flags', (n: number) => `FROM a:1\nCOPY ${'--from=a '.repeat(n / 9)}a b`],
    ['blanks', (n: number) => `FROM a:1\n${' '.repeat(n)}x`],
    ['an endless image name', (n: number) => `FROM ${'a/'.repeat(n / 2)}`],
    ['dollars', (n: number) => `FROM ${'$'.repeat(n)}`],
    ['open braces', (n: number) => `FROM ${'${a:-'.repeat(n / 5)}`],
  ])('takes 256 KiB of %s within the time of one slice', (_title, make) => {
    const text = make(256 * KIB);
    const started = performance.now();
    e2b(text);
    // Twenty milliseconds on an idle machine; what grows with the square of the length takes minutes.
    expect(performance.now() - started).toBeLessThan(2000);
  });
});

it.each([
  ['debian', { path: ['debian'] }],
  ['debian:12', { path: ['debian'], tag: '12' }],
  ['localhost/a:b', { host: 'localhost', path: ['a'], tag: 'b' }],
  ['reg:5000/A/b@sha256:00', { host: 'reg:5000', path: ['a', 'b'], digest: 'sha256:00' }],
  ['ghcr.io/a/b:1@sha256:00', { host: 'ghcr.io', path: ['a', 'b'], tag: '1', digest: 'sha256:00' }],
])('splits the image reference %s', (image, parts) => {
  expect(imageName(image)).toEqual(parts);
});

// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables in braces are what is tested
import { CUBE_BASE } from '../../../src/protocol/dockerimages.ts';
import { type Case, testCase as c, FM, file, skillMd, tree } from './support.ts';

const e2b = (...lines: string[]) => tree(skillMd('runtime: e2b'), file('.e2b.dockerfile', lines.join('\n')));
const cube = (...lines: string[]) =>
  tree(skillMd('runtime: cubesandbox'), file('.cubesandbox.dockerfile', lines.join('\n')));
const E = '.e2b.dockerfile';
const C = '.cubesandbox.dockerfile';
const FROM = 'FROM debian:12-slim';
const COPY = `COPY --from=${CUBE_BASE} /usr/bin/envd /usr/bin/envd`;
const START = 'ENTRYPOINT ["/usr/local/bin/cube-entrypoint.sh"]';

const READABLE: [title: string, ...lines: string[]][] = [
  ['one stage', FROM, 'RUN true'],
  ['instructions in any case, indented', '  from debian:12-slim as Build', '\trun true'],
  ['a comment, an empty line and a directive before FROM', '# syntax=docker/dockerfile:1', '', '# hi', FROM],
  ['CRLF line ends', `${FROM}\r\nRUN apt-get update \\\r\n  && true\r`],
  ['a byte order mark', `\ufeff${FROM}`],
  [
    'continuation lines with comments and empty lines between',
    FROM,
    'RUN a \\',
    '# not the end',
    '',
    ' && b \\',
    ' && c',
  ],
  ['a continuation at the end of the file', FROM, 'RUN a \\'],
  ['an escape directive', '# escape=`', FROM, 'RUN dir c:\\', 'RUN a `', ' && b'],
  ['an escape directive in another case', '#ESCAPE = `', FROM, 'RUN a `', ' && b'],
  ['a comment that looks like a directive below the first instruction', FROM, '# escape=x', 'RUN true'],
  ['a heredoc', FROM, 'RUN <<EOF', 'FROM nothing', 'anything at all', 'EOF', 'RUN true'],
  ['a heredoc with tabs', FROM, 'RUN cat <<-EOF >/x', '\tfi', '\tEOF', 'RUN true'],
  ['two quoted heredocs of one COPY', FROM, 'COPY <<"A" <<\'B\' /x/', 'a', 'A', 'b', 'B', 'RUN true'],
  ['a shift and a here-string, which are no heredocs', FROM, 'RUN echo $((1 << 2)) "<<EOF" && cat <<<x', 'RUN true'],
  ['ONBUILD with a heredoc', FROM, 'ONBUILD RUN <<E', 'xx', 'E', 'RUN true'],
  ['ARG in FROM', 'ARG TAG=12-slim', 'FROM debian:${TAG}', 'RUN true'],
  ['ARG with quotes, several on a line, one built on another', 'ARG A="debian" B=12-slim', 'ARG C=$A:$B', 'FROM $C'],
  ['an ARG without default and a fallback', 'ARG TAG', 'FROM debian:${TAG:-12-slim}'],
  ['an ARG with a value and an alternative', 'ARG SLIM=1', 'FROM debian:12${SLIM:+-slim}'],
  ['a platform variable', 'FROM --platform=$BUILDPLATFORM debian:12-${TARGETARCH}'],
  ['a form of variable that only newer builders know', 'ARG A=x', 'FROM debian:${A#x}'],
  ['a quoted image', 'FROM "debian:12-slim"'],
  ['an image with port, path and digest', `FROM reg.example.com:5000/a/b@sha256:${'0'.repeat(64)}`],
  ['every instruction', FROM, 'MAINTAINER x', 'LABEL a=b', 'ENV A=b', 'EXPOSE 1', 'VOLUME /x', 'WORKDIR /x', 'ADD a b'],
  ['the rest of them', FROM, 'HEALTHCHECK NONE', 'SHELL ["sh"]', 'STOPSIGNAL 9', 'ONBUILD RUN a', 'ARG B'],
];

const BROKEN: [title: string, lines: string[], ...findings: string[]][] = [
  ['an empty file', [''], `DockerfileFromMissing ${E}:1`],
  ['only comments', ['# FROM debian:12', ''], `DockerfileFromMissing ${E}:1`],
  ['no FROM', ['RUN true'], `DockerfileFromMissing ${E}:1`, `DockerfileInvalid ${E}:1`],
  ['only ARG', ['ARG A=1'], `DockerfileFromMissing ${E}:1`],
  ['an instruction before FROM', ['', 'RUN true', FROM], `DockerfileInvalid ${E}:2`],
  ['an unknown instruction', [FROM, 'RUM true'], `DockerfileInvalid ${E}:2`],
  ['a forgotten backslash', [FROM, 'RUN a', '  && b'], `DockerfileInvalid ${E}:3`],
  ['a line after two backslashes, which do not continue', [FROM, 'RUN echo a\\\\', 'fi'], `DockerfileInvalid ${E}:3`],
  ['every unreadable line', [FROM, 'RUM a', 'RUN a', 'fi'], `DockerfileInvalid ${E}:2`, `DockerfileInvalid ${E}:4`],
  ['a heredoc without end', [FROM, 'RUN <<EOF', 'a', ' EOF'], `DockerfileInvalid ${E}:2`],
  ['FROM without image', ['FROM'], `DockerfileInvalid ${E}:1`],
  ['FROM with too many words', ['FROM debian:12 slim'], `DockerfileInvalid ${E}:1`],
  ['a stage with a number as name', ['FROM debian:12 AS 1st'], `DockerfileInvalid ${E}:1`],
  ['a variable without value', ['ARG BASE', 'FROM $BASE'], `DockerfileInvalid ${E}:2`],
  ['a variable of no ARG', [FROM, 'ARG BASE=debian:12', 'FROM $BASE'], `DockerfileInvalid ${E}:3`],
  ['an impossible image name', ['FROM debian:12;true'], `DockerfileInvalid ${E}:1`],
  ['an image name with a variable behind it', ['ARG T=x', 'FROM debian:$T!'], `DockerfileInvalid ${E}:2`],
  ['two escape directives', ['# escape=`', '# escape=`', FROM], `DockerfileInvalid ${E}:2`],
  ['an escape character that is none', ['# escape=x', FROM], `DockerfileInvalid ${E}:1`],
  ['UTF-16', ['F\0R\0O\0M\0'], `DockerfileInvalid ${E}:1`],
  ['a NUL further down', [FROM, 'RUN \0'], `DockerfileInvalid ${E}:2`],
];

const E2B_RULES: [title: string, lines: string[], ...findings: string[]][] = [
  ['scratch', ['FROM scratch', 'COPY app /app'], `DockerfileBaseRefused ${E}:1`],
  ['distroless', ['FROM gcr.io/distroless/python3-debian12:nonroot'], `DockerfileBaseRefused ${E}:1`],
  ['distroless by its tag', ['FROM reg.example.com/app:1-distroless'], `DockerfileBaseRefused ${E}:1`],
  ['scratch by a variable', ['ARG B=scratch', 'FROM ${B}'], `DockerfileBaseRefused ${E}:2`],
  ['scratch under the last stage', ['FROM scratch AS a', 'FROM A AS b', 'FROM b'], `DockerfileBaseRefused ${E}:1`],
  ['scratch in an earlier stage alone', ['FROM scratch AS data', 'COPY a /a', FROM, 'COPY --from=data / /data/']],
  ['a whole root copied onto scratch', [`${FROM} AS b`, 'FROM scratch', 'COPY --from=b / /']],
  [
    'a root of distroless copied by number',
    ['FROM gcr.io/distroless/cc:1', 'FROM scratch', 'COPY --from=0 / /'],
    `DockerfileBaseRefused ${E}:1`,
  ],
  ['a root archive on scratch', ['FROM scratch', 'ADD rootfs.tar.xz /']],
  ['a stage that is named like its own image', ['FROM debian:12 AS x', 'FROM x']],
  ['a distribution that E2B does not prepare', ['FROM amazonlinux:2023'], `~DockerfileBaseUnsupported ${E}:1`],
  ['Red Hat’s base', ['FROM registry.access.redhat.com/ubi9/ubi-minimal:9.4'], `~DockerfileBaseUnsupported ${E}:1`],
  [
    'ENTRYPOINT, CMD and USER',
    [FROM, 'USER app', 'ENTRYPOINT ["a"]', 'CMD a', 'USER root'],
    ...[3, 4, 5].map((n) => `~DockerfileInstructionIgnored ${E}:${n}`),
  ],
  ['those of a stage that the last one only copies from', [`${FROM} AS a`, 'CMD a', FROM, 'COPY --from=a /a /a']],
  [
    'those of a stage that the last one inherits',
    [`${FROM} AS a`, 'CMD a', 'FROM a'],
    `~DockerfileInstructionIgnored ${E}:2`,
  ],
  ['no tag', ['FROM debian'], `~DockerfileBaseUnpinned ${E}:1`],
  ['no tag behind a port', ['FROM localhost:5000/debian'], `~DockerfileBaseUnpinned ${E}:1`],
  ['latest', ['FROM debian:latest'], `~DockerfileBaseUnpinned ${E}:1`],
  ['another moving tag', ['FROM node:lts-slim'], `~DockerfileBaseUnpinned ${E}:1`],
  ['a release, and a digest without tag', ['FROM node:22-slim', `FROM debian@sha256:${'a'.repeat(64)}`]],
  ['an unpinned stage that is only copied from', ['FROM golang AS b', FROM], `~DockerfileBaseUnpinned ${E}:1`],
  ['a platform image', ['FROM registry.example.com/skills/e2b-python:1.0.0', 'RUN pip install lxml==5.3.0']],
  ['the base is unknown', ['ARG A=x', 'FROM debian:${A%y}']],
];

const CUBE_RULES: [title: string, lines: string[], ...findings: string[]][] = [
  ['the base of CubeSandbox', [`FROM ${CUBE_BASE}`, 'RUN true']],
  ['that base with CMD and USER', [`FROM ${CUBE_BASE}`, 'USER app', 'CMD ["python3", "a.py"]']],
  ['that base in another registry, by a variable', ['ARG R=reg.example.com', 'FROM $R/cubesandbox-base:2026.16']],
  ['CubeSandbox’s own images', ['FROM cube-sandbox-cn.tencentcloudcr.com/cube-sandbox/sandbox-code:1.0']],
  ['a platform image', ['FROM registry.example.com/skills/cubesandbox-python:1.0.0', 'RUN true']],
  ['a stage of that base', [`FROM ${CUBE_BASE} AS a`, 'FROM a']],
  ['another base', [FROM, 'RUN true'], `~EnvdMissing ${C}:1`],
  ['another base in the last stage', [`FROM ${CUBE_BASE} AS a`, FROM], `~EnvdMissing ${C}:2`],
  ['scratch', ['FROM scratch'], `~EnvdMissing ${C}:1`],
  ['a name that only resembles it', ['FROM reg.example.com/cubesandbox-team/python:3.11'], `~EnvdMissing ${C}:1`],
  ['envd copied and started', [FROM, COPY, START]],
  [
    'envd copied with its directory from a stage',
    [`FROM ${CUBE_BASE} AS c`, FROM, 'COPY --from=c /usr/bin/ /usr/bin/', START],
  ],
  ['envd copied in a stage below', [`${FROM} AS a`, COPY, START, 'FROM a', 'CMD ["a"]']],
  ['envd copied from the context in JSON form', [FROM, 'COPY ["bin/envd", "/usr/bin/envd"]', 'CMD envd -port 49983']],
  ['envd fetched by RUN', [FROM, 'RUN curl -fo /usr/bin/envd https://example.com/envd', 'CMD ["/usr/bin/envd"]']],
  ['the whole root of the base', [`FROM ${CUBE_BASE} AS a`, 'FROM scratch', 'COPY --from=a / /', START]],
  ['envd copied and not started', [FROM, COPY], `~EnvdNotStarted ${C}:1`],
  ['envd copied and a program of its own', [FROM, COPY, 'ENTRYPOINT ["/app"]'], `~EnvdNotStarted ${C}:3`],
  ['an ENTRYPOINT that replaces the base’s', [`FROM ${CUBE_BASE}`, 'ENTRYPOINT ["a"]'], `~EnvdNotStarted ${C}:2`],
  [
    'the whole root of the base, without its settings',
    [`FROM ${CUBE_BASE} AS a`, 'FROM scratch', 'COPY --from=a / /'],
    `~EnvdNotStarted ${C}:2`,
  ],
  ['no tag', ['FROM ghcr.io/tencentcloud/cubesandbox-base'], `~DockerfileBaseUnpinned ${C}:1`],
  ['a base that the file does not tell', ['ARG A=x', 'FROM ${A%y}']],
  ['an empty file', [''], `DockerfileFromMissing ${C}:1`],
];

/** Dockerfiles of both engines. */
export const DOCKERFILE_CASES: Case[] = [
  ...READABLE.map(([title, ...lines]) => c(`Dockerfile with ${title}`, e2b(...lines))),
  ...BROKEN.map(([title, lines, ...findings]) => c(`unreadable Dockerfile: ${title}`, e2b(...lines), ...findings)),
  ...E2B_RULES.map(([title, lines, ...findings]) => c(`E2B Dockerfile: ${title}`, e2b(...lines), ...findings)),
  ...CUBE_RULES.map(([title, lines, ...findings]) =>
    c(`CubeSandbox Dockerfile: ${title}`, cube(...lines), ...findings),
  ),
  c(
    'a broken Dockerfile of no valid runtime is not read',
    tree(file('SKILL.md', `${FM.replace('d\n', 'd\nruntime: x\n')}`), file(E, 'x')),
    'RuntimeUnknown SKILL.md:4:10',
  ),
];

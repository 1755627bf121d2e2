import { describe, expect, test } from 'vitest';
import { EXIT } from '../../../src/build/exits.ts';
import { buildJob } from '../../../src/build/manifest.ts';
import { parseCommand } from '../../../src/jobs/arguments.ts';
import { pushExit } from '../../../src/jobs/skopeo.ts';
import { FULL, INPUT, SETTINGS } from '../build/samples.ts';

/** The command line of a container of the Job, without the program. */
function argvOf(settings: typeof SETTINGS, name: string): string[] {
  const spec = buildJob(INPUT, settings).spec?.template.spec;
  const { command = [], args = [] } =
    [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])].find((one) => one.name === name) ?? {};
  return [...command.slice(settings.jobsCommand.length), ...args];
}

describe('parseCommand', () => {
  test('understands what the Job says to fetch', () => {
    expect(parseCommand(argvOf(FULL, 'fetch'))).toMatchInlineSnapshot(`
      {
        "command": "fetch",
        "options": {
          "context": "/kaniko/skill/context",
          "dockerfile": "/kaniko/skill/dockerfile/Dockerfile",
          "dockerfileSource": {
            "sha256": "2222222222222222222222222222222222222222222222222222222222222222",
            "size": 120,
          },
          "network": {
            "caFile": "/run/skill-build/ca/ca.crt",
            "httpProxy": "http://proxy:3128",
            "httpsProxy": "http://proxy:3128",
            "noProxy": "10.0.0.0/8",
          },
          "tar": {
            "sha256": "1111111111111111111111111111111111111111111111111111111111111111",
            "size": 4096,
          },
          "urls": "/run/skill-build/urls",
        },
      }
    `);
  });

  test('understands what the Job says to push', () => {
    expect(parseCommand(argvOf(SETTINGS, 'push'))).toMatchInlineSnapshot(`
      {
        "command": "push",
        "options": {
          "certificates": undefined,
          "credential": "/run/skill-build/credential/config.json",
          "image": "registry.example.com/skills/prod-1/team-a/acme.docs.pdf-8ebf9cff-e2b",
          "insecure": false,
          "layout": "/run/skill-build/image/layout",
          "maxBytes": 5000000000,
          "network": {
            "httpProxy": undefined,
            "httpsProxy": undefined,
            "noProxy": undefined,
          },
          "result": "/dev/termination-log",
          "skopeo": "skopeo",
          "work": "/work",
        },
      }
    `);
    expect(parseCommand(argvOf(FULL, 'push'))).toMatchObject({
      options: { insecure: true, certificates: '/run/skill-build/ca', network: { httpProxy: 'http://proxy:3128' } },
    });
  });

  test.each<[string[], RegExp]>([
    [[], /must be fetch or push, found ""/],
    [['pull'], /must be fetch or push, found "pull"/],
    [['push', 'extra'], /"extra" is one argument too many/],
    [['push', '--what=1'], /--what/],
    [['fetch'], /--urls is missing/],
    [['fetch', '--urls=u', '--context=c', '--dockerfile=d', '--tar-sha256=12'], /--tar-sha256 must be 64 hex/],
    [['push', '--layout=l', '--work=w', '--image=i', '--max-bytes=5GB'], /--max-bytes must be a number/],
  ])('%j is refused: %s', (argv, expected) => {
    expect(() => parseCommand(argv)).toThrow(expected);
    expect(() => parseCommand(argv)).toThrow(expect.objectContaining({ exitCode: EXIT.Usage }));
  });

  test('shows help on request', () => {
    expect(parseCommand(['--help'])).toEqual({ command: 'help' });
  });
});

describe('pushExit', () => {
  test.each<[string, number]>([
    ['unauthorized: authentication required', EXIT.PushDenied],
    ['denied: requested access to the resource is denied', EXIT.PushDenied],
    ['received unexpected HTTP status: 403 Forbidden', EXIT.PushDenied],
    ['x509: certificate signed by unknown authority', EXIT.PushDenied],
    ['http: server gave HTTP response to HTTPS client', EXIT.PushDenied],
    ['errors: name unknown: repository name not known to registry', EXIT.PushDenied],
    ['toomanyrequests: rate limit; access denied for now', EXIT.PushUnavailable],
    ['received unexpected HTTP status: 503 Service Unavailable', EXIT.PushUnavailable],
    ['dial tcp 10.0.0.1:5000: connect: connection refused', EXIT.PushUnavailable],
    ['something new', EXIT.PushUnavailable],
    ['received unexpected HTTP status: 413 Request Entity Too Large', EXIT.ImageTooLarge],
  ])('%s → %d', (output, expected) => {
    expect(pushExit(output)).toBe(expected);
  });
});

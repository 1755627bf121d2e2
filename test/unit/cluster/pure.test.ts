import { describe, expect, test } from 'vitest';
import { summarise, type VitestReport } from '../../../scripts/lib/summary.ts';
import { cacheKey } from '../../cluster/cache.ts';
import { parseCgi, repositoryOf, serviceOf } from '../../cluster/git-server.ts';
import { checkGoVersion } from '../../cluster/go-program.ts';
import { installAdvice } from '../../cluster/packages.ts';
import { PORT_TAKEN } from '../../cluster/ports.ts';
import { ownerOf } from '../../cluster/run-dir.ts';
import { eventually } from '../../support/eventually.ts';
import { rulesFor } from '../../support/operator-account.ts';

describe('the Git server', () => {
  test.each([
    ['/pub/a.git/info/refs', '/pub/a.git'],
    ['/pub/a.git', '/pub/a.git'],
    ['/pub/group/a.git/git-upload-pack', '/pub/group/a.git'],
    ['/pub/a.github/x', '/pub/a.github/x'],
    ['/pub/plain', '/pub/plain'],
  ])('takes from the path %s the repository %s', (path, repository) => {
    expect(repositoryOf(path)).toBe(repository);
  });

  test.each([
    ['/pub/a.git/info/refs', '', 'info/refs'],
    ['/pub/a.git/git-upload-pack', '0014command=ls-refs\n', 'ls-refs'],
    ['/pub/a.git/git-upload-pack', '0011command=fetch0001', 'fetch'],
    ['/pub/a.git/git-upload-pack', '0032want 0123456789', 'upload-pack'],
    ['/pub/a.git/git-receive-pack', '', 'git-receive-pack'],
    ['/pub/a.git/HEAD', '', 'HEAD'],
  ])('calls a request for %s with the body %j a request for %s', (path, body, service) => {
    expect(serviceOf(path, Buffer.from(body))).toBe(service);
  });

  test.each([
    ['Status: 404 Not Found\r\nX: a:b\r\n\r\nbody', { status: 404, headers: [['X', 'a:b']], rest: 'body' }],
    ['Content-Type: text/plain\n\n', { status: 200, headers: [['Content-Type', 'text/plain']], rest: '' }],
    ['Content-Type: text/plain\r\n', undefined],
  ])('splits the answer %j of a CGI program', (text, expected) => {
    const parsed = parseCgi(Buffer.from(text));
    expect(parsed && { ...parsed, rest: parsed.rest.toString() }).toEqual(expected);
  });
});

describe('the starter', () => {
  test.each([
    ['run-12-345-abc', { pid: 12, startTime: '345' }],
    ['run-12-abc', undefined],
    ['ports', undefined],
  ])('reads from the directory name %s its owner', (name, owner) => {
    expect(ownerOf(name)).toEqual(owner);
  });

  test.each([
    ['go version go1.26.8 linux/amd64', true],
    ['go version go2.0 linux/amd64', true],
    ['go version go1.25.1 linux/amd64', false],
    ['nonsense', false],
  ])('given %j says whether Go is new enough', (output, enough) => {
    const check = () => checkGoVersion(output, 'the servers', 'Or set KUBEBUILDER_ASSETS.');
    if (enough) expect(check).not.toThrow();
    else expect(check).toThrow('KUBEBUILDER_ASSETS');
  });

  test.each([
    ['listen tcp 127.0.0.1:2379: bind: address already in use', true],
    ['Error: listen EADDRINUSE: address already in use 127.0.0.1:1', true],
    ['error: Bind to port 22533 on 127.0.0.1 failed: Address already in use.', true],
    ['failed to load certificate', false],
  ])('recognises in %j whether the port was taken', (log, taken) => {
    expect(PORT_TAKEN.test(log)).toBe(taken);
  });

  test('gives other inputs another cache key, wherever the boundary between them lies', () => {
    expect(new Set([cacheKey('a', 'bc'), cacheKey('ab', 'c'), cacheKey('abc')]).size).toBe(3);
    expect(cacheKey('a', 'bc')).toBe(cacheKey('a', Buffer.from('bc')));
  });

  test('names the one command that installs what is missing', () => {
    expect(installAdvice(['git', 'openssl'])).toMatchInlineSnapshot(
      `"apt-get install --no-install-recommends git openssl"`,
    );
  });
});

describe("the chart's rules in a test", () => {
  test('move to the namespace of the test, cluster-wide bindings under a name of their own', () => {
    const yaml = `kind: ClusterRole
metadata: {name: op}
---
kind: ClusterRoleBinding
metadata: {name: op}
subjects: [{kind: ServiceAccount, name: skill-operator, namespace: skill-operator-system}]
---
kind: Role
metadata: {name: op, namespace: skill-operator-system}
`;
    const [role, binding, local] = rulesFor(yaml, 'ns-1');
    expect(role?.metadata.name).toBe('op');
    expect(binding?.metadata.name).toBe('op-ns-1');
    expect(binding?.subjects[0].namespace).toBe('ns-1');
    expect(local?.metadata).toEqual({ name: 'op', namespace: 'ns-1' });
  });
});

describe('eventually', () => {
  test('returns the first value that is there', async () => {
    const values = [undefined, false, null, 0];
    await expect(eventually(() => values.shift(), { intervalMs: 1 })).resolves.toBe(0);
  });

  test('goes on after an error and tells the last one when time is up', async () => {
    let calls = 0;
    const failing = eventually(
      () => {
        calls++;
        throw new Error('still red');
      },
      { timeoutMs: 1000, intervalMs: 5, what: 'the light turning green' },
    );
    await expect(failing).rejects.toThrow('the light turning green did not come about within 1000 ms: still red');
    expect(calls).toBeGreaterThan(1);
  });
});

describe('the sum of a test run', () => {
  const report = (part: Partial<VitestReport>): VitestReport => ({
    numPassedTests: 0,
    numFailedTests: 0,
    numPendingTests: 0,
    numTodoTests: 0,
    testResults: [],
    ...part,
  });
  const brokenFile = { name: 'a.test.ts', status: 'failed', assertionResults: [] };
  test.each([
    ['all pass', report({ numPassedTests: 3 }), 0, '3 passed, 0 failed', true],
    ['some are skipped', report({ numPassedTests: 3, numPendingTests: 1 }), 0, '3 passed, 0 failed, 1 skipped', true],
    ['one fails', report({ numPassedTests: 3, numFailedTests: 1 }), 1, '3 passed, 1 failed', false],
    ['a file breaks', report({ numPassedTests: 3, testResults: [brokenFile] }), 1, '3 passed, 1 failed', false],
    ['nothing runs', report({}), 0, '0 passed, 0 failed', false],
    ['Vitest fails beside the tests', report({ numPassedTests: 3 }), 1, '3 passed, 0 failed', false],
    ['Vitest is killed', undefined, null, '0 passed, 0 failed', false],
  ])('when %s', (_case, input, code, line, ok) => {
    expect(summarise(input, code)).toMatchObject({ line, ok });
  });
});

import { describe, expect, it } from 'vitest';
import { REASONS } from '../../../src/base/reasons.ts';
import { holdSecret } from '../../../src/base/redact.ts';
import {
  bodyText,
  ENGINE_ERRORS,
  EngineError,
  kindOf,
  logTail,
  type Refusal,
  refusalError,
  retryAfterMs,
  tidy,
} from '../../../src/engine/errors.ts';

const refusal = (change: Partial<Refusal>): Refusal => ({
  engine: 'e2b',
  purpose: 'read',
  call: 'GET /v2/templates',
  status: 500,
  text: '',
  ...change,
});

describe('kindOf', () => {
  it.each<[string, Partial<Refusal>, string]>([
    ['a bad name at E2B', { status: 400, purpose: 'create', text: 'Invalid template name' }, 'Invalid'],
    [
      'a validation text at CubeSandbox',
      { engine: 'cubesandbox', status: 400, purpose: 'create', text: '130400: dns: x' },
      'Invalid',
    ],
    [
      'its database behind a 400',
      { engine: 'cubesandbox', status: 400, purpose: 'create', text: 'dial tcp: refused' },
      'Unknown',
    ],
    [
      'a name that only contains dns',
      { engine: 'cubesandbox', status: 400, purpose: 'create', text: 'host mydnshost' },
      'Unknown',
    ],
    ['a 400 on a read', { status: 400 }, 'Unknown'],
    ['a delete under sandboxes', { status: 400, purpose: 'delete', text: "cannot delete template 'x'" }, 'InUse'],
    [
      'a delete under a build, old CubeSandbox',
      { engine: 'cubesandbox', status: 400, purpose: 'delete', text: 'has an active job' },
      'InUse',
    ],
    ['another 400 on a delete', { status: 400, purpose: 'delete', text: 'bad id' }, 'Unknown'],
    ['a 409 on a delete', { status: 409, purpose: 'delete' }, 'InUse'],
    ['a 409 on a create', { status: 409, purpose: 'create' }, 'Conflict'],
    ['no key', { status: 401 }, 'Auth'],
    ['a blocked team', { status: 403, purpose: 'create', text: 'team is blocked' }, 'Auth'],
    ['an alias of another team', { status: 403, purpose: 'create', text: "Alias 'x' is already owned" }, 'Conflict'],
    ['a deleted template', { status: 404, purpose: 'create', text: 'Template has been deleted' }, 'Conflict'],
    ['a route that is not there', { status: 404, purpose: 'create', text: 'page not found' }, 'Config'],
    ['a redirect', { status: 308 }, 'Config'],
    ['an unreadable body', { engine: 'cubesandbox', status: 422, purpose: 'create' }, 'Invalid'],
    ['too many requests', { status: 429 }, 'Quota'],
    ['a slow route', { engine: 'cubesandbox', status: 408 }, 'Unavailable'],
    ['no builder', { status: 503, purpose: 'start' }, 'Unavailable'],
    ['a server error', { status: 500 }, 'Unavailable'],
    ['a teapot', { status: 418 }, 'Unknown'],
  ])('takes %s for what it is', (_name, change, kind) => {
    expect(kindOf(refusal(change))).toBe(kind);
  });
});

it('every kind has a reason of the catalogue', () => {
  for (const { reason } of Object.values(ENGINE_ERRORS)) expect(REASONS).toHaveProperty(reason);
});

describe('the messages', () => {
  const message = (change: Partial<Refusal>) => refusalError(refusal(change)).message;

  it('say what is wrong and what to do', () => {
    expect(message({ status: 401, text: 'Invalid API key.' })).toMatchInlineSnapshot(
      `"E2B answered 401 to GET /v2/templates: Invalid API key. Put a valid key into the engine's Secret; it is read again at the next try."`,
    );
    expect(message({ status: 503, text: '<html>\n<b>down</b>' })).toMatchInlineSnapshot(
      `"engine unavailable: E2B answered 503 to GET /v2/templates: <html> <b>down</b>. It is tried again; check that the engine runs and that the operator can reach it."`,
    );
    expect(message({ status: 429, text: '' })).toMatchInlineSnapshot(
      `"engine busy: E2B answered 429 to GET /v2/templates. It is tried again; raise the limit of the engine account or lower the concurrent registrations."`,
    );
    expect(
      message({ status: 400, purpose: 'create', call: 'POST /v3/templates', text: 'CPU count' }),
    ).toMatchInlineSnapshot(
      `"E2B answered 400 to POST /v3/templates: CPU count. Correct what the engine names: the Dockerfile, or the engine's resources and commands in the operator configuration."`,
    );
    expect(
      message({
        status: 409,
        purpose: 'delete',
        engine: 'cubesandbox',
        call: 'DELETE /templates/tpl-1',
        text: 'in use',
      }),
    ).toMatchInlineSnapshot(
      `"CubeSandbox answered 409 to DELETE /templates/tpl-1: in use. It is tried again; stop the sandboxes of this template to finish sooner."`,
    );
    expect(
      new EngineError('Foreign', 'e2b', 'The E2B template x does not carry the name y').message,
    ).toMatchInlineSnapshot(
      `"The E2B template x does not carry the name y. It is left alone; remove it at the engine by hand if it is not needed."`,
    );
  });

  it('are cut and free of secrets even where the cut goes through one', () => {
    holdSecret('engine-S3cret-value');
    const shown = message({ status: 500, text: `${'x'.repeat(290)} engine-S3cret-value` });
    expect(shown).not.toContain('S3cret');
    expect(shown).not.toContain('engine-S');
    expect(shown.length).toBeLessThan(500);
  });
});

describe('the delay', () => {
  it.each([
    ['7', 7000],
    [' 0 ', 0],
    ['Thu, 01 Jan 1970 00:01:40 GMT', 40_000],
    ['Thu, 01 Jan 1970 00:00:01 GMT', 0],
    ['soon', undefined],
    ['-5', undefined],
    [undefined, undefined],
  ])('of Retry-After %j is %s ms', (header, expected) => {
    expect(retryAfterMs(header, 60_000)).toBe(expected);
  });

  it.each([
    [7000, 7000],
    [undefined, 30_000],
    [86_400_000, 900_000],
  ])('of a 429 with %s ms is %s ms', (asked, expected) => {
    expect(refusalError(refusal({ status: 429, retryAfterMs: asked })).retryAfterMs).toBe(expected);
  });

  it('is none where nobody asked for one', () => {
    expect(refusalError(refusal({ status: 500 })).retryAfterMs).toBeUndefined();
  });
});

it.each([
  ['{"code":400,"message":"bad"}', 'bad'],
  ['{"error":"bad"}', 'bad'],
  ['{"message":""}', '{"message":""}'],
  ['plain', 'plain'],
  ['null', 'null'],
])('bodyText reads %s as %s', (body, expected) => {
  expect(bodyText(body)).toBe(expected);
});

it('tidy keeps one line without control characters', () => {
  expect(tidy('a\u001b[31m\nb\u202e\tc', 100)).toBe('a [31m b c');
  expect(tidy('x'.repeat(20), 10)).toBe(`${'x'.repeat(9)}…`);
});

describe('logTail', () => {
  it('keeps whole last lines within the bytes', () => {
    expect(logTail(['first', 'second', 'third'], 10)).toBe('third');
    expect(logTail(['a', 'b'], 13)).toBe('a\nb');
    expect(logTail([])).toBe('');
  });

  it('never splits a character', () => {
    expect(logTail(['é'.repeat(20)], 7)).toBe('ééé');
  });
});

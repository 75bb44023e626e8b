import pg from 'pg';
import { expect, test } from 'vitest';
import { isForPeople, openLogger, prettyLines } from './logger.ts';

function lines(colour = false) {
  const written: string[] = [];
  const log = openLogger('info', prettyLines({ write: (text) => written.push(text) }, colour));
  return { log, written };
}

test('people read the time of day, the level, what happened and the facts', () => {
  const { log, written } = lines();
  log.info({ node: 'node_a', reason: 'two words', count: 2 }, 'node.joined');
  log.warn({ error: new Error('no answer') }, 'store.anchor_error');
  expect(written[0]).toMatch(/^\d\d:\d\d:\d\d {2}info {3}node\.joined {2}node=node_a reason="two words" count=2\n$/);
  expect(written[1]).toMatch(/^\d\d:\d\d:\d\d {2}warn {3}store\.anchor_error {2}error="no answer"\n$/);
});

test.each([
  ['auto', true, true],
  ['auto', false, false],
  ['pretty', false, true],
  ['json', true, false],
] as const)('the log format %s on a terminal (%s) is for people: %s', (format, terminal, forPeople) => {
  expect(isForPeople(format, terminal)).toBe(forPeople);
});

test('a fault has its stack, and no secret is in any line', () => {
  const { log, written } = lines();
  log.error({ error: new Error('at postgres://me:hunter2@host/db'), token: 'abc-secret' }, 'fatal');
  expect(written[0]).toMatch(/\n {4}at /);
  expect(written.join('')).not.toMatch(/hunter2|abc-secret/);
});

test('an error that JSON cannot represent is logged with its message and stack, without secrets', () => {
  const { log, written } = lines();
  const circle = Object.assign(new Error('at postgres://me:hunter2@host/db'), { self: {} });
  circle.self = { circle: [circle] };
  const big = Object.assign(new Error('a large number'), { size: 2n ** 64n });
  for (const error of [circle, big, 5n, undefined]) log.error({ error }, 'fault');
  expect(written).toHaveLength(4);
  expect(written[0]).toMatch(/error="at postgres:\/\/me:\[secret\]@host\/db"\n[^]*\n {4}at /);
  expect(written[1]).toMatch(/error="a large number"\n[^]*\n {4}at /);
  expect(written[2]).toContain('error=5');
  expect(written.join('')).not.toContain('hunter2');
});

test('an error of the database is logged without the fields that quote the refused row', () => {
  const written: string[] = [];
  const log = openLogger('info', { write: (line: string) => written.push(line) });
  const error = Object.assign(
    new pg.DatabaseError('null value in column "name" violates not-null constraint', 200, 'error'),
    {
      code: '23502',
      detail: 'Failing row contains (p1, hunter2).',
      where: 'JSON data, line 1: {"password": "hunter2',
      internalQuery: "select 'hunter2'",
    },
  );
  log.error({ error }, 'fault');
  log.error({ error: new AggregateError([error]) }, 'fault');
  expect(written.join('')).toContain('23502');
  expect(written.join('')).not.toContain('hunter2');
});

test('colours are for terminals, and text cannot make its own', () => {
  const { log, written } = lines(true);
  log.warn({ title: '\u001B[31mred' }, 'seen');
  expect(written[0]).toContain('\u001B[33mwarn \u001B[0m');
  expect(written[0]).not.toContain('\u001B[31m');
});

test('a key is in no line, whichever address it was sent to', () => {
  const { log, written } = lines();
  const address = (query: string) => new Error(`GET ws://host/?${query}&headless=true failed`);
  for (const name of ['jwt', 'token', 'key', 'apiKey']) log.warn({ error: address(`${name}=hunter2`) }, 'seen');
  log.info({ 'steel-api-key': 'hunter2', headers: { 'steel-api-key': 'hunter2', authorization: 'hunter2' } }, 'seen');
  expect(written.join('')).toContain('headless=true');
  expect(written.join('')).not.toContain('hunter2');
});

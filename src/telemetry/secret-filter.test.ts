import { expect, test } from 'vitest';
import type { TelemetryEvent } from '../lib/telemetry.ts';
import { lineOf } from './record.ts';
import { secretFilter } from './secret-filter.ts';

const hiding = (...passwords: string[]) => {
  const filter = secretFilter();
  filter.add(passwords.map((password) => ({ password })));
  return filter;
};
const event: TelemetryEvent = { ts: 1, type: 'network_request', category: 'network', source: { kind: 'cdp' } };

test('a secret is removed in every spelling, also half a character of it and JSON in JSON', () => {
  const secret = 'p"ss \\wörd/1';
  const filter = hiding(secret, 'two\ud800');
  filter.add([{ username: 'me', password: secret }]);
  const json = JSON.stringify({ secret });
  for (const spelling of [
    secret,
    encodeURIComponent(secret),
    new URLSearchParams({ secret }).toString(),
    json,
    JSON.stringify({ json }),
    Buffer.from(`me:${secret}`).toString('base64'),
    'two\ufffd',
  ]) {
    expect(filter.finds(spelling)).toBe(true);
    expect(filter.clean(`a ${spelling} b`)).toMatch(/^a .*\[redacted\].* b$/);
    expect(filter.clean(spelling)).not.toMatch(/ss|two|bWU6/);
  }
  expect(hiding('abc').clean('abc')).toBe('abc');
});

test('secrets that were added before stay hidden', () => {
  const filter = hiding('the-first-secret');
  for (let at = 0; at < 400; at++) filter.add([{ password: `typed-${at}` }]);
  expect(filter.clean('the-first-secret, typed-0, typed-399')).toBe('[redacted], [redacted], [redacted]');
});

test.each([
  ['secrets', Array.from({ length: 2001 }, (_, at) => `typed-${at}`)],
  ['characters', Array.from({ length: 100 }, (_, at) => `${at}${'ж '.repeat(5000)}`)],
  ['characters of one secret', ['x'.repeat(100_000)]],
])('with too many %s, no text and no data of an event is left', (_, secrets) => {
  const filter = hiding('the-first-secret', ...secrets);
  expect(filter.full).toBe(true);
  expect(filter.clean('the-first-secret')).toBe('[redacted]');
  filter.add([{ password: 'another' }]);
  const line = lineOf(
    7,
    {
      ...event,
      source: { kind: 'cdp', metadata: { protocol: 'the-first-secret' } },
      data: { 'the-first-secret': 1, post_data: 'the-first-secret' },
    },
    filter,
  );
  expect(JSON.parse(line!)).toEqual({ seq: 7, event: { ...event, truncated: true } });
});

test('an event that is too large loses its data before it is searched, and then its secrets', () => {
  const filter = hiding('secret');
  const large = { ...event, source: { kind: 'cdp', metadata: { protocol: 'a secret' } } } as const;
  const line = lineOf(7, { ...large, data: { text: 'x'.repeat(1_000_000) } }, filter);
  expect(JSON.parse(line!).event).toEqual({
    ...event,
    source: { kind: 'cdp', metadata: { protocol: 'a [redacted]' } },
    truncated: true,
  });
});

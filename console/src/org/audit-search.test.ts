import { expect, test } from 'vitest';
import { auditFilter, auditSearch } from './audit-search.ts';

test('an address of the audit log keeps valid filters only', () => {
  const whole = { query: '/browsers', method: 'DELETE', days: 30, until: '2026-11-02' };
  expect(auditSearch(whole)).toEqual(whole);
  expect(auditSearch({ query: '', method: 'TRACE', days: 365, until: 'yesterday', other: 1 })).toEqual({});
  expect(auditSearch({ until: '2026-13-45' })).toEqual({});
});

test('a filter has the days before now, or before the end of a day', () => {
  const at = Date.parse('2026-11-17T12:00:00Z');
  const { start, end } = auditFilter({}, at);
  expect(Date.parse(end) - Date.parse(start)).toBe(7 * 86_400_000);
  expect(Date.parse(end)).toBeGreaterThan(at);
  const chosen = auditFilter({ until: '2026-11-02', days: 1, query: 'x', method: 'POST' }, at);
  expect(chosen).toMatchObject({ search: 'x', method: 'POST' });
  expect(new Date(chosen.start).getTime()).toBe(new Date('2026-11-02T00:00:00').getTime());
});

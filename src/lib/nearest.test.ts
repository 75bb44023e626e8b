import { expect, test } from 'vitest';
import { nearest } from './nearest.ts';

const names = ['headless', 'stealth', 'timeout_seconds', 'name', 'CORRAL_PORT', 'CORRAL_HOST'];

test.each([
  ['headles', 'headless'],
  ['haedless', 'headless'],
  ['Headless', 'headless'],
  ['timeoutSeconds', 'timeout_seconds'],
  ['CORRAL_PROT', 'CORRAL_PORT'],
  ['CORRAL_HOTS', 'CORRAL_HOST'],
])('%s was meant to be %s', (word, meant) => {
  expect(nearest(word, names)).toBe(meant);
});

test.each(['colour', 'x', '', 'a'.repeat(5000)])('%.20s is like none of them', (word) => {
  expect(nearest(word, names)).toBeUndefined();
});

import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { keyring } from '../lib/seal.ts';
import { confirmedValues } from './confirmed-values.ts';

const place = { connectionId: 'ma_1', host: 'id.example', name: 'password' };
const [old, current] = [randomBytes(32), randomBytes(32)];
const values = (...keys: Buffer[]) => confirmedValues({ ring: () => keyring(keys), reread: async () => {} });

test('a mark is for one value of one name at one host of one connection', () => {
  const { mark, isMarked } = values(current);
  const made = mark(place, 'p4ss');
  expect(made).not.toContain('p4ss');
  expect(isMarked(made, place, 'p4ss')).toBe(true);
  expect(isMarked(made, place, 'changed')).toBe(false);
  for (const other of [{ connectionId: 'ma_2' }, { host: 'other.example' }, { name: 'pin' }])
    expect(isMarked(made, { ...place, ...other }, 'p4ss')).toBe(false);
});

test('a mark holds while the key that made it is known', () => {
  const made = values(old).mark(place, 'p4ss');
  expect(values(current, old).isMarked(made, place, 'p4ss')).toBe(true);
  expect(values(current).isMarked(made, place, 'p4ss')).toBe(false);
});

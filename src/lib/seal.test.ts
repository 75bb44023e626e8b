import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { CannotOpen, keyring, newKey, parseKey } from './seal.ts';

const oldKey = randomBytes(32);
const newerKey = randomBytes(32);

describe('a sealed value', () => {
  test('opens at the place it was sealed for, and only there', () => {
    const ring = keyring([oldKey]);
    const envelope = ring.seal('hunter2', 'credentials:a:password');
    expect(envelope).not.toContain('hunter2');
    expect(ring.open(envelope, 'credentials:a:password')).toBe('hunter2');
    expect(() => ring.open(envelope, 'credentials:b:password')).toThrow(CannotOpen);
  });

  test('never looks the same twice', () => {
    const ring = keyring([oldKey]);
    expect(ring.seal('x', 'p')).not.toBe(ring.seal('x', 'p'));
  });

  test('sealed with an old key still opens, and new writes use the new key', () => {
    const envelope = keyring([oldKey]).seal('kept', 'p');
    const ring = keyring([newerKey, oldKey]);
    expect(ring.open(envelope, 'p')).toBe('kept');
    expect(ring.seal('fresh', 'p')).toContain(`v1.${ring.current}.`);
    expect(envelope).not.toContain(ring.current);
  });

  test('says which key is missing', () => {
    const envelope = keyring([oldKey]).seal('kept', 'p');
    expect(() => keyring([newerKey]).open(envelope, 'p')).toThrow(envelope.split('.')[1]);
  });

  test.each(['', 'v1', 'v1.a.b', 'v2.a.b.c', 'v1.a.b.c.d'])('that is garbage (%j) is refused as such', (envelope) => {
    expect(() => keyring([oldKey]).open(envelope, 'p')).toThrow(CannotOpen);
  });

  test('with one bit changed is refused, wherever the bit is', () => {
    const ring = keyring([oldKey]);
    const envelope = ring.seal('abc', 'p');
    const parts = envelope.split('.');
    for (const part of [2, 3]) {
      const bytes = Buffer.from(parts[part]!, 'base64url');
      for (let index = 0; index < bytes.length; index++) {
        const changed = Buffer.from(bytes);
        changed[index]! ^= 1;
        const forged = parts.with(part, changed.toString('base64url')).join('.');
        expect(() => ring.open(forged, 'p')).toThrow(CannotOpen);
      }
    }
  });
});

test('keys are 32 bytes in hex or base64, and nothing shorter is taken for one', () => {
  expect(parseKey(newKey())).toHaveLength(32);
  expect(parseKey('ab'.repeat(32))).toHaveLength(32);
  expect(parseKey('password')).toBeUndefined();
  expect(parseKey('')).toBeUndefined();
});

test('derived bytes differ by purpose and by key', () => {
  const ring = keyring([newerKey, oldKey]);
  expect(ring.derive('tokens')).not.toEqual(ring.derive('cookies'));
  expect(ring.derive('tokens')).not.toEqual(ring.derive('tokens', ring.ids[1]));
});

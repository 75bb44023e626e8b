import { Value } from 'typebox/value';
import { expect, test } from 'vitest';
import { OutputItem } from './protocol.ts';

test('a piece of output has at most 64 KiB', () => {
  const piece = (bytes: number) => ({ stream: 'stdout', data_b64: Buffer.alloc(bytes).toString('base64') });
  expect(Value.Check(OutputItem, piece(65_536))).toBe(true);
  expect(Value.Check(OutputItem, piece(65_540))).toBe(false);
});

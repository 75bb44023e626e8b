import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { jsonListParts, jsonStringParts } from './json-parts.ts';

async function joined(bytes: Buffer, encoding: 'utf8' | 'base64'): Promise<unknown> {
  const parts: Buffer[] = [];
  for await (const part of jsonStringParts(bytes, encoding)) parts.push(part);
  return JSON.parse(Buffer.concat(parts).toString());
}

test.each([
  ['nothing', Buffer.alloc(0)],
  ['letters of one to four bytes', Buffer.from('aж€😀"\\\n\u0001'.repeat(60_000))],
  ['bytes that are no text', randomBytes(500_000)],
  ['an unfinished letter', Buffer.from('€').subarray(0, 2)],
])('%s becomes the same string as at once', async (_, bytes) => {
  expect(await joined(bytes, 'utf8')).toBe(bytes.toString('utf8'));
  expect(await joined(bytes, 'base64')).toBe(bytes.toString('base64'));
});

test.each([0, 1, 3, 5000])('a list of %s items in parts is the same JSON', async (count) => {
  const items = Array.from({ length: count }, (_, at) => ({ at, text: '"é'.repeat(100) }));
  const parts = await jsonListParts('items', items);
  expect(Buffer.concat(parts).toString()).toBe(JSON.stringify({ items }));
  expect(parts.length > 1).toBe(count > 1000);
});

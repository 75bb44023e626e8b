import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { jsonStringParts } from './json-parts.ts';

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

import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { valueOf } from './driver.ts';

const answer = (text: string) => Readable.from([Buffer.from(text)]) as unknown as IncomingMessage;

test('an answer of many values is not parsed', async () => {
  await expect(valueOf(answer(`{"value":[${'{},'.repeat(50_000)}{}]}`))).rejects.toThrow('too many values');
  expect(await valueOf(answer('{"value":["a","b"]}'))).toEqual(['a', 'b']);
});

import { expect, test } from 'vitest';
import { addressOf, eventsOf } from './http.ts';

async function* chunks(...texts: string[]) {
  for (const text of texts) yield Buffer.from(text);
}

test('events are read across chunks, in the middle of a letter too, and comments say nothing', async () => {
  const bytes = Buffer.from(': hello\n\nid: 1\ndata: {"a":"ä"}\n\nevent: x\ndata: {"b":\ndata: 2}\n\ndata: {"half"');
  const found: unknown[] = [];
  const pieces = Array.from({ length: bytes.length }, (_, at) => bytes.subarray(at, at + 1));
  const stream = (async function* () {
    yield* pieces;
  })();
  for await (const event of eventsOf(stream)) found.push(event);
  expect(found).toEqual([{ a: 'ä' }, { b: 2 }]);
});

test('lines may end with a carriage return', async () => {
  const found: unknown[] = [];
  for await (const event of eventsOf(chunks('data: 1\r\n\r\n', 'data: 2\r\n\r\n'))) found.push(event);
  expect(found).toEqual([1, 2]);
});

test('lists and pairs become queries as the API takes them', () => {
  const target = { url: 'http://one.example/base/', key: '' };
  const query = { limit: 5, category: ['a', 'b'], tags: { team: 'x y' }, none: undefined };
  expect(addressOf(target, '/browsers', query).href).toBe(
    'http://one.example/base/browsers?limit=5&category=a&category=b&tags%5Bteam%5D=x+y',
  );
});

import { createServer, type RequestListener } from 'node:http';
import { expect, test } from 'vitest';
import { listenOnLoopback } from '../../../test/support/listen.ts';
import { addressOf, askJson, eventsOf } from './http.ts';
import { fillPath } from './operations.ts';

async function* chunks(...texts: string[]) {
  for (const text of texts) yield Buffer.from(text);
}

test('events are read across chunks, also if a letter is split, and comments are ignored', async () => {
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

test('an answer that is not JSON or is cut off is reported', async () => {
  const said = async (answer: RequestListener) => {
    const { port, close } = await listenOnLoopback(createServer(answer));
    const asked = askJson({ url: `http://127.0.0.1:${port}`, key: 'k' }, { method: 'GET', path: '/browsers' });
    return asked
      .then(
        () => '',
        (error: Error) => `${error.name}: ${error.message}`,
      )
      .finally(close);
  };
  expect(await said((_, response) => response.end('<html>'))).toMatch(/^Fault: The answer is not JSON/);
  const broken = await said((_, response) => {
    response.writeHead(200, { 'content-length': 100 }).write('{"half":', () => response.destroy());
  });
  expect(broken).toMatch(/^Fault: The connection to the service was lost/);
});

test('a word that would change the path is refused as a name', () => {
  expect(fillPath('/browsers/{id_or_name}/x', ['a b'])).toBe('/browsers/a%20b/x');
  for (const word of ['', '.', '..']) expect(() => fillPath('/browsers/{id}', [word])).toThrow(/is not the name or id/);
});

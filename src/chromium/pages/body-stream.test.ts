import { expect, test, vi } from 'vitest';
import { announcedLength, bodyStream } from './body-stream.ts';
import type { HiddenPage } from './hidden-pages.ts';

type Headers = Parameters<typeof announcedLength>[0];

/** A page that gives these pieces, and then waits. */
function pageOf(...pieces: string[]) {
  const ask = vi.fn<() => Promise<unknown>>(async () => {
    const data = pieces.shift();
    return data === undefined ? new Promise(() => {}) : { data, eof: false };
  });
  return { page: { ask } as unknown as HiddenPage, ask };
}

const textOf = async (body: AsyncIterable<Buffer>) => {
  let text = '';
  for await (const piece of body) text += String(piece);
  return text;
};

test.each<[number | undefined, Headers]>([
  [5, [['Content-Length', '5']]],
  [
    5,
    [
      ['content-length', '5'],
      ['content-length', ' 5'],
    ],
  ],
  [undefined, []],
  [undefined, [['content-length', '+5']]],
  [undefined, [['content-length', '5, 5']]],
  [
    undefined,
    [
      ['content-length', '5'],
      ['content-length', '6'],
    ],
  ],
  [
    undefined,
    [
      ['content-length', '5'],
      ['Transfer-Encoding', 'chunked'],
    ],
  ],
  [
    undefined,
    [
      ['content-length', '5'],
      ['content-encoding', 'gzip'],
    ],
  ],
])('the length of a body is %s for the headers %j', (length, headers) => {
  expect(announcedLength(headers)).toBe(length);
});

test('a body ends at the length that was announced, also if the site sends more, or does not end it', async () => {
  const { page } = pageOf('hello', 'HTTP/1.1 200 OK');
  expect(await textOf(bodyStream(page, '1', [['content-length', '5']], true))).toBe('hello');
  const longer = pageOf('hello and more');
  expect(await textOf(bodyStream(longer.page, '1', [['content-length', '5']], true))).toBe('hello');
});

test('a chunked body is read to its end, and its content-length is ignored', async () => {
  const pieces = ['hello', ' and more'];
  const ask = async () => ({ data: pieces.shift() ?? '', eof: pieces.length === 0 });
  const headers: Headers = [
    ['content-length', '5'],
    ['transfer-encoding', 'chunked'],
  ];
  expect(await textOf(bodyStream({ ask } as unknown as HiddenPage, '1', headers, true))).toBe('hello and more');
});

test('the body of an answer that has none is not waited for', async () => {
  const { page, ask } = pageOf();
  expect(await textOf(bodyStream(page, '1', [['content-length', '5']], false))).toBe('');
  expect(ask).not.toHaveBeenCalled();
});

import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { hiddenPages } from '../../../test/support/hidden-pages.ts';
import { memory } from '../../lib/byte-budget.ts';
import type { Hold } from '../holds.ts';
import { curl, curlRaw } from './service.ts';

const MIB = 1024 * 1024;

test.each([1, 20])('the answer to a body of %i MiB is counted until it is complete', async (size) => {
  const group = memory.group();
  const counted: number[] = [];
  const paused = { networkId: 'n', request: { url: 'http://a/', method: 'POST', headers: {} } };
  const hidden = hiddenPages(
    (say) => {
      say('Fetch.requestPaused', { ...paused, requestId: '1' });
      say('Fetch.requestPaused', { ...paused, requestId: '2', responseStatusCode: 200, responseHeaders: [] });
    },
    () => {
      counted.push(group.used);
      return { data: 'x'.repeat(MIB), eof: counted.length === 4 };
    },
  );
  const held = { engine: { hidden, memory: group } } as unknown as Hold;
  const request = { url: 'http://a/', method: 'POST' as const, body: 'x'.repeat(size * MIB) };
  const parts = await curl(held, request, new AbortController().signal);
  const { body } = JSON.parse(Buffer.concat(parts).toString()) as { body: string };
  expect(body).toHaveLength(4 * MIB);
  expect(Math.max(...counted)).toBeGreaterThanOrEqual(MIB);
  expect(group.used).toBe(0);
});

test.each([101, 700])(
  'an answer with the status %i is refused, and its page is free again',
  async (responseStatusCode) => {
    const paused = { networkId: 'n', request: { url: 'http://a/', method: 'GET', headers: {} } };
    const pages = hiddenPages(
      (say) => say('Fetch.requestPaused', { ...paused, requestId: '1', responseStatusCode, responseHeaders: [] }),
      () => ({ data: 'x', eof: false }),
    );
    let free = false;
    const use: typeof pages.use = (work) => pages.use(work).finally(() => (free = true));
    const held = { engine: { hidden: { use }, memory: memory.group() } } as unknown as Hold;
    const request = { url: 'http://a/', method: 'GET', headers: [], body: Readable.from([]), timeoutMs: 5000 };
    await expect(curlRaw(held, request, new AbortController().signal)).rejects.toMatchObject({
      code: 'transport_failed',
    });
    await expect.poll(() => free).toBe(true);
  },
);

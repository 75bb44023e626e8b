import { expect, test } from 'vitest';
import { memory } from '../../lib/byte-budget.ts';
import type { Stream } from './channel.ts';
import { devtoolsPort } from './devtools.ts';

const MIB = 1024 * 1024;

test('answers that are not read are counted, and no longer when the connection ends', async () => {
  const group = memory.group();
  const page = { type: 'page', title: 'x'.repeat(2048), url: 'y'.repeat(2048) };
  const targetInfos = Array.from({ length: 500 }, (_, at) => ({ ...page, targetId: String(at) }));
  const port = devtoolsPort({
    browser: { version: {} } as never,
    mux: {} as never,
    control: () => ({ ask: async () => ({ targetInfos }) }) as never,
    group,
  });
  const requests = Buffer.from('GET /json/list HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(8));
  let end!: () => void;
  const over = new Promise<never>((_resolve, reject) => (end = () => reject(new Error('The stream was reset.'))));
  over.catch(() => {});
  const items = [Promise.resolve({ bytes: requests }), over];
  port({
    next: () => items.shift() ?? over,
    bytes: () => new Promise(() => {}),
    end() {},
    reset() {},
  } as unknown as Stream);
  await expect.poll(() => group.used).toBeGreaterThan(8 * 2 * MIB - MIB);
  end();
  await expect.poll(() => group.used).toBe(0);
});

import { expect, test } from 'vitest';
import { ByteBudget } from '../../lib/byte-budget.ts';
import { memoryShare } from '../../lib/memory-share.ts';
import { capture, print, readContent } from './acts.ts';
import type { ReadPage } from './page.ts';

const MIB = 1024 * 1024;

test.each([
  ['a picture', (page: ReadPage) => capture(page, {})],
  ['a document', (page: ReadPage) => print(page, {})],
  ['the text of a page', readContent],
])('%s is counted when it has arrived, and waits for room', async (_what, read) => {
  const budget = new ByteBudget({ total: 10 * MIB });
  const group = budget.project('one');
  const text = 'x'.repeat(4 * MIB);
  let over = false;
  const room = memoryShare(group, () => {}, undefined, budget);
  const others = [7, 8].map((size) => {
    const share = budget.share(budget.project('other'), 'sender', () => {});
    expect(share.grow(size * MIB, () => {})).toBe(true); // the second exceeds the limit
    return share;
  });
  const page = {
    client: { ask: async () => ({ data: text }) },
    evaluate: async () => text,
    room,
  } as unknown as ReadPage;
  const reading = read(page).then(() => (over = true));
  await expect.poll(() => budget.waiting).toBe(1);
  expect(over).toBe(false);
  for (const share of others) share.close();
  await reading;
  expect(group.used).toBe(4 * MIB);
  room.close();
  expect(budget.used).toBe(0);
});

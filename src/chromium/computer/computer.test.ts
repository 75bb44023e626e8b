import { expect, test } from 'vitest';
import type { Clipboard } from '../pages/clipboard.ts';
import { computer } from './computer.ts';
import type { Hands } from './hands.ts';

test('a client that leaves while it waits for its turn is refused at once, and performs nothing', async () => {
  const written: string[] = [];
  let end!: () => void;
  const hands = {
    async write(text: string) {
      written.push(text);
      if (text === 'first') await new Promise<void>((resolve) => (end = resolve));
    },
    settled: async () => {},
  } as unknown as Hands;
  const { act } = computer(hands, {} as Clipboard);
  const type = (text: string, signal: AbortSignal) => act([{ type: 'type', text, delayMs: 0 }], signal);
  const stays = new AbortController();
  const leaves = new AbortController();
  const first = type('first', stays.signal);
  const second = type('second', leaves.signal);
  const third = type('third', stays.signal);
  leaves.abort(new Error('The client left.'));
  await expect(second).rejects.toThrow('The client left.');
  end();
  await Promise.all([first, third]);
  expect(written).toEqual(['first', 'third']);
});

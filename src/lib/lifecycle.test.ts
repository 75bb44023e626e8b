import { expect, test } from 'vitest';
import { lifecycle } from './lifecycle.ts';
import { undoOnFailure } from './undo.ts';
import { newId, pick } from './ids.ts';

const shop = lifecycle(
  { open: 'It is open.', shut: 'It is shut.', gone: 'There is no shop.' },
  { close: { from: ['open'], to: 'shut' }, burn: { from: ['open', 'shut'], to: 'gone' } },
);

test('a state that no event leaves is final', () => {
  expect(shop.stateNames.filter(shop.isFinal)).toEqual(['gone']);
});

test('the drawing has an arrow for every move', () => {
  expect(shop.toMermaid()).toBe(
    'stateDiagram-v2\n  [*] --> open\n  open --> shut: close\n  open --> gone: burn\n  shut --> gone: burn',
  );
});

test('undo runs newest first, continues after a failing step, and rethrows the first error', async () => {
  const ran: string[] = [];
  await expect(
    undoOnFailure(async (undo) => {
      undo(() => ran.push('first'));
      undo(() => Promise.reject(new Error('the undo failed too')));
      undo(() => ran.push('last'));
      throw new Error('the work failed');
    }),
  ).rejects.toThrow('the work failed');
  expect(ran).toEqual(['last', 'first']);
});

test('what outlives the work is closed by the same steps, once, and the first failure is reported after the last step', async () => {
  const ran: string[] = [];
  const { close } = await undoOnFailure(async (undo, undoAll) => {
    undo(() => ran.push('first'));
    undo(() => Promise.reject(new Error('a step failed')));
    undo(() => ran.push('last'));
    return { close: undoAll };
  });
  expect(ran).toEqual([]);
  await expect(close()).rejects.toThrow('a step failed');
  await expect(close()).rejects.toThrow('a step failed');
  expect(ran).toEqual(['last', 'first']);
});

test('ids have the look clients know', () => {
  expect(newId()).toMatch(/^[a-z][a-z0-9]{23}$/);
  expect(newId('proj_')).toMatch(/^proj_[a-z][a-z0-9]{23}$/);
  expect(new Set(Array.from({ length: 1000 }, () => newId())).size).toBe(1000);
  expect(new Set(pick('abc', 3000))).toEqual(new Set('abc'));
});

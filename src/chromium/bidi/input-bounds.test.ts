import { ActionDispatcher } from 'chromium-bidi/out/Default/gen/src/bidiMapper/modules/input/ActionDispatcher.js';
import { InputState } from 'chromium-bidi/out/Default/gen/src/bidiMapper/modules/input/InputState.js';
import { expect, test } from 'vitest';
import { boundInput } from './input-bounds.ts';

boundInput();

const release = (id: string, value: string) => ({ id, action: { type: 'keyUp' as const, value } });

test('a tab has at most so many sources of input', () => {
  const state = new InputState();
  for (let times = 0; times < 3; times++)
    for (let at = 0; at < 100; at++) expect(state.getOrCreate(`k${at}`, 'key' as never)).toMatchObject({ type: 'key' });
  expect(() => state.getOrCreate('k100', 'key' as never)).toThrow('at most 100 sources');
});

test('the notes of what is to be released are bounded, the last of each key', () => {
  const state = new InputState();
  for (let at = 0; at < 50_000; at++) state.cancelList.push(release(`k${at % 3}`, at % 2 ? 'a' : 'b'));
  state.getOrCreate('k0', 'key' as never);
  expect(state.cancelList).toHaveLength(6);
  expect(state.cancelList.at(-1)).toEqual(release('k1', 'a')); // the last that was pressed
  for (let at = 0; at < 3000; at++) state.cancelList.push(release('k0', String(at)));
  state.getOrCreate('k0', 'key' as never);
  expect(state.cancelList).toHaveLength(1000);
});

test('many actions of one tick are begun in pieces', async () => {
  const state = new InputState();
  state.getOrCreate('n', 'none' as never);
  let inTurn = 0;
  let most = 0;
  const pause = {
    id: 'n',
    action: {
      get type() {
        most = Math.max(most, ++inTurn);
        setImmediate(() => (inTurn = 0));
        return 'pause' as const;
      },
    },
  };
  const dispatcher = new ActionDispatcher(state, {} as never, 'T', false);
  await dispatcher.dispatchTickActions(Array.from({ length: 1000 }, () => pause));
  expect(most).toBeGreaterThan(0);
  expect(most).toBeLessThanOrEqual(200);
});

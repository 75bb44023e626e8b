import { expect, test } from 'vitest';
import type { Viewer } from './viewer.ts';
import { viewerPictures } from './viewer-pictures.ts';

/** A viewer of a tab that was sent three pictures, and whose timers are only noted. */
function viewerOf(refreshRate?: () => number | undefined) {
  const acknowledged: number[] = [];
  const timers: { ms: number; work: () => unknown }[] = [];
  const viewer = {
    sink: {},
    shown: { undrawn: [1, 2, 3], missed: false },
    onShown() {},
    send: async (_tab: unknown, _method: string, { sessionId }: { sessionId: number }) =>
      void acknowledged.push(sessionId),
    later: (ms: number, work: () => unknown) => timers.push({ ms, work }),
  };
  return { pictures: viewerPictures(viewer as unknown as Viewer, refreshRate), acknowledged, timers };
}

test('pictures are acknowledged as they are drawn', () => {
  const { pictures, acknowledged, timers } = viewerOf();
  for (let drawn = 0; drawn < 3; drawn++) pictures.drawn();
  expect(acknowledged).toEqual([1, 2, 3]);
  expect(timers).toEqual([]);
});

test('and no faster than the refresh rate, which may change', () => {
  let rate: number | undefined = 0.001;
  const { pictures, acknowledged, timers } = viewerOf(() => rate);
  pictures.drawn();
  pictures.drawn();
  expect(acknowledged).toEqual([1]);
  expect(timers).toHaveLength(1);
  expect(timers[0]!.ms).toBeGreaterThan(0);
  expect(timers[0]!.ms).toBeLessThanOrEqual(1_000_000);
  timers[0]!.work();
  expect(acknowledged).toEqual([1, 2]);
  rate = undefined;
  pictures.drawn();
  expect(acknowledged).toEqual([1, 2, 3]);
});

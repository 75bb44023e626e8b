import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { expect, test, vi } from 'vitest';
import { endWithPipe } from './pipe-end.ts';

test.each([
  ['exits', 0],
  ['does not exit', 1],
])('a browser that %s after its pipe has ended is stopped so often: %i', async (what, times) => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const toBrowser = new PassThrough();
  const stop = vi.fn<() => Promise<void>>(async () => {});
  let exit = () => {};
  endWithPipe({ toBrowser, exited: new Promise<void>((resolve) => (exit = resolve)), stop });
  await vi.advanceTimersByTimeAsync(60_000);
  const closed = once(toBrowser, 'close');
  toBrowser.destroy();
  await closed;
  await vi.advanceTimersByTimeAsync(19_999);
  expect(stop).not.toHaveBeenCalled();
  if (what === 'exits') exit();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(stop).toHaveBeenCalledTimes(times);
  vi.useRealTimers();
});

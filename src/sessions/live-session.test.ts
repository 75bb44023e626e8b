import { afterEach, expect, test, vi } from 'vitest';
import type { Engine } from '../chromium/engine.ts';
import { silent } from '../lib/log.ts';
import { liveSession, type LiveSessionOptions } from './live-session.ts';

afterEach(() => vi.useRealTimers());

/** A browser that does nothing but be there until it is closed. */
function engine(): Engine {
  const mux = { isClosed: false };
  let exit!: () => void;
  const exited = new Promise<void>((resolve) => (exit = resolve));
  const close = async () => {
    await new Promise((resolve) => setTimeout(resolve, 10));
    mux.isClosed = true;
    exit();
  };
  return { mux, browser: { exited, logTail: () => [] }, close } as unknown as Engine;
}

const sessionOf = (options: Partial<LiveSessionOptions>) =>
  liveSession({
    id: 'x',
    engine: engine(),
    timeoutSeconds: 60,
    mayStandBy: false,
    proxy: undefined,
    relaunch: () => Promise.reject(new Error('it did not crash')),
    onIdle: () => {},
    onLost: () => {},
    log: silent,
    ...options,
  });

test('the idle timeout begins when the last holder has left, and again with each', async () => {
  vi.useFakeTimers();
  const onIdle = vi.fn<() => void>();
  const session = sessionOf({ timeoutSeconds: 10, onIdle });
  vi.advanceTimersByTime(9999);
  const [first, second] = [await session.hold(), await session.hold()];
  vi.advanceTimersByTime(60_000);
  first.release();
  first.release(); // twice is once
  vi.advanceTimersByTime(60_000);
  second.release();
  vi.advanceTimersByTime(9999);
  (await session.hold()).release();
  vi.advanceTimersByTime(9999);
  expect(onIdle).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(onIdle).toHaveBeenCalledOnce();
  vi.useRealTimers();
  await session.end('idle');
});

test('a session that is to be started again twice at once is, one after the other; or once, if that was enough', async () => {
  const first = engine();
  const session = sessionOf({ engine: first });
  try {
    const starts: string[] = [];
    const start = (name: string) => async () => (starts.push(name), engine());
    await Promise.all([
      session.restart(start('a'), 'because'),
      session.restart(start('b'), 'because'),
      session.restart(start('c'), 'because', async (old) => old === first),
    ]);
    expect(starts).toEqual(['a', 'b']);
  } finally {
    await session.end('deleted');
  }
});

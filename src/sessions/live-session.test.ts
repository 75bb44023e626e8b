import { expect, test } from 'vitest';
import type { Engine } from '../chromium/engine.ts';
import { silent } from '../lib/log.ts';
import { liveSession } from './live-session.ts';

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

test('a session that is to be started again twice at once is, one after the other; or once, if that was enough', async () => {
  const first = engine();
  const session = liveSession({
    id: 'x',
    engine: first,
    timeoutSeconds: 60,
    mayStandBy: false,
    proxy: undefined,
    relaunch: () => Promise.reject(new Error('it did not crash')),
    onIdle: () => {},
    onLost: () => {},
    log: silent,
  });
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

import { afterEach, expect, test, vi } from 'vitest';
import { fakeEngine } from '../../test/support/fake-engine.ts';
import { fakeTelemetry } from '../../test/support/fake-telemetry.ts';
import { silent } from '../lib/log.ts';
import { liveSession, type LiveSessionOptions } from './live-session.ts';

afterEach(() => vi.useRealTimers());

const engine = () => fakeEngine().engine;

const sessionOf = (options: Partial<LiveSessionOptions>) =>
  liveSession({
    id: 'x',
    projectId: 'p',
    engine: engine(),
    timeoutSeconds: 60,
    mayStandBy: false,
    proxy: undefined,
    telemetry: fakeTelemetry().telemetry,
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

test('a session is seen once more before it sleeps, so that there is a picture of it; one in a pool is not', async () => {
  vi.useFakeTimers();
  for (const timeoutSeconds of [60, undefined]) {
    const { engine, done } = fakeEngine();
    const thumbnail = async () => (done.push('picture'), Buffer.from('seen'));
    const session = sessionOf({ engine: Object.assign(engine, { thumbnail }), mayStandBy: true, timeoutSeconds });
    (await session.hold()).release();
    await vi.advanceTimersByTimeAsync(6000);
    expect(done).toEqual(timeoutSeconds ? ['picture', 'freeze'] : ['freeze']);
    expect(String((await session.sight.thumbnail())?.jpeg)).toBe(timeoutSeconds ? 'seen' : 'undefined');
    await session.end('deleted');
  }
});

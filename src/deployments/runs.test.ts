import { expect, test } from 'vitest';
import type { Outcome } from '../chromium/workshop/worker-reports.ts';
import { WorkerError, type Worker } from '../chromium/workshop/worker.ts';
import { silent } from '../lib/log.ts';
import { currentOwner } from '../lib/scope.ts';
import { runHub } from './hub.ts';
import type { InvocationRow } from './invocation-store.ts';
import { runs, type RunsDeps } from './runs.ts';

const lines = {
  add() {},
  hide: (text: string) => text,
  tail: () => ['last line'],
  flush: async () => {},
  close: async () => {},
};

/** A queue of invocations, and workers that end when the test says so. */
function queueOf(ids: string[], more: Partial<RunsDeps> = {}) {
  const waiting = [...ids];
  const begun = new Map<string, (outcome: Outcome) => void>();
  const ends: { id: string; status: string; reason?: string | null; output?: string | null }[] = [];
  const stopped: string[] = [];
  const worker = (): Worker => ({
    runs: 0,
    alive: true,
    current: true,
    gone: new Promise(() => {}),
    memory: async () => 0,
    async stop(why) {
      stopped.push(why ?? '');
    },
    run: ({ id }) => new Promise((resolve) => begun.set(id, resolve)),
  });
  const hub = runHub();
  const queue = runs({
    store: {
      async claim() {
        const id = waiting.shift();
        return id === undefined
          ? undefined
          : ({
              id,
              deployment_id: 'd',
              app_name: 'a',
              action_name: 'b',
              payload: null,
              timeout_seconds: 900,
            } as InvocationRow);
      },
      async finish(id, end) {
        ends.push({ id, ...end });
        return undefined;
      },
      overAmong: async (asked) => asked,
    },
    workers: { take: async () => worker(), giveBack: async () => {} },
    hub,
    nodeId: 'node',
    most: 2,
    mostOfApp: 10,
    linesOf: async () => lines,
    endBrowsers: async () => {},
    onReplacedOver() {},
    history: { note() {} },
    offenders: () => [],
    log: silent,
    ...more,
  });
  return { queue, hub, begun, ends, stopped, waiting };
}

test('a node runs as many as it may, and takes the next when one has ended', async () => {
  const { queue, begun, ends, waiting } = queueOf(['one', 'two', 'three']);
  void queue.pump();
  await expect.poll(() => [...begun.keys()]).toEqual(['one', 'two']);
  expect(waiting).toEqual(['three']);
  begun.get('one')!({ output: '1' });
  await expect.poll(() => begun.has('three')).toBe(true);
  expect(ends).toEqual([{ id: 'one', status: 'succeeded', output: '1' }]);
  begun.get('two')!({ failure: 'It threw.' });
  await expect.poll(() => ends.length).toBe(2);
  expect(ends[1]).toMatchObject({ id: 'two', status: 'failed', reason: 'It threw.\nIts last lines:\nlast line' });
  begun.get('three')!({ output: null });
  await queue.close();
});

test('an invocation that was ended in the database is ended here, with its worker', async () => {
  const { queue, hub, begun, ends, stopped } = queueOf(['one']);
  void queue.pump();
  await expect.poll(() => begun.has('one')).toBe(true);
  hub.hear('state one');
  await expect.poll(() => ends).toMatchObject([{ id: 'one', status: 'failed' }]);
  expect(stopped).toEqual(['It was cancelled.']);
  await queue.close();
});

test('a fault of the service in the work of an invocation fails it, and the next one is taken', async () => {
  const { queue, ends } = queueOf(['one', 'two'], {
    workers: {
      take() {
        currentOwner()!.end(new Error('a fault'));
        return new Promise(() => {});
      },
      giveBack: async () => {},
    },
  });
  void queue.pump();
  await expect.poll(() => ends.map(({ id }) => id)).toEqual(['one', 'two']);
  expect(ends[0]!.reason).toContain('The service failed to run this invocation.');
  await queue.close();
});

test('a worker that does not start fails the invocation, and the next one is taken', async () => {
  const { queue, ends } = queueOf(['one', 'two'], {
    workers: { take: () => Promise.reject(new WorkerError('The app does not load.')), giveBack: async () => {} },
  });
  void queue.pump();
  await expect.poll(() => ends.map(({ id }) => id)).toEqual(['one', 'two']);
  expect(ends[0]!.reason).toContain('The app does not load.');
  await queue.close();
});

test('the queue is asked for no invocation of a project that has filled the disk', async () => {
  const asked: string[][] = [];
  const claim = async (_node: string, _most: number, not: string[] = []) => void asked.push(not);
  const { queue } = queueOf([], {
    store: { claim, finish: async () => undefined, overAmong: async () => [] },
    offenders: () => ['greedy'],
  });
  void queue.pump();
  await expect.poll(() => asked).toEqual([['greedy']]);
  await queue.close();
});

test('when the service closes, what runs fails with that reason', async () => {
  const { queue, begun, ends } = queueOf(['one']);
  void queue.pump();
  await expect.poll(() => begun.has('one')).toBe(true);
  await queue.close();
  expect(ends).toMatchObject([{ id: 'one', status: 'failed', reason: expect.stringContaining('service was stopped') }]);
});

test('one fails without internal error messages when its log cannot be opened, or when the service breaks', async () => {
  const secret = 'ENOENT: no such file, open /data/secret';
  const noLog = queueOf(['one'], { linesOf: () => Promise.reject(new Error(secret)) });
  const noWorker = queueOf(['one'], {
    workers: { take: () => Promise.reject(new Error(secret)), giveBack: async () => {} },
  });
  for (const { queue, ends } of [noLog, noWorker]) {
    void queue.pump();
    await expect.poll(() => ends).toMatchObject([{ id: 'one', status: 'failed' }]);
    expect(ends[0]!.reason).toContain('The service failed');
    expect(ends[0]!.reason).not.toContain('/data');
    await queue.close();
  }
});

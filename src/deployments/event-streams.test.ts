import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { following } from './event-streams.ts';
import { runHub } from './hub.ts';
import type { InvocationRow, Light } from './invocation-store.ts';
import type { LogRow } from './log-store.ts';

const readerUntil = (signal: AbortSignal) => ({
  id: 'one',
  since: null,
  signal,
  project: 'project',
  reserve: async () => {},
});

/** An invocation that printed so many lines, ten of which are read at once. */
function invocation(lines: number) {
  const at = new Date(0);
  const row = { id: 'one', status: 'running', started_at: at, created_at: at, bytes: 0 } as Light<InvocationRow>;
  let [read, looks] = [0, 0];
  const hub = runHub();
  const { ofInvocation } = following({
    hub,
    logs: {
      async after(_owner, id): Promise<LogRow[]> {
        const from = Number(id);
        const next = Array.from({ length: Math.min(10, lines - from) }, (_, n) => from + n + 1);
        read += next.length;
        return next.map((n) => ({ id: String(n), at, message: `line ${n}` }));
      },
    },
    deployment: async () => undefined,
    invocations: {
      find: async () => row,
      withTexts: async <R>(found: R) => found,
      async statusOf() {
        looks++;
        return row.status;
      },
    },
    async *appsOf() {},
  });
  return { row, hub, ofInvocation, read: () => read, looks: () => looks };
}

test('a reader that is slow makes the service read no more than a portion ahead', async () => {
  const { ofInvocation, read } = invocation(1000);
  const left = new AbortController();
  const events = ofInvocation(readerUntil(left.signal));
  for (let taken = 0; taken < 5; taken++) await events.next();
  expect(read()).toBe(10);
  for (let taken = 0; taken < 10; taken++) await events.next();
  expect(read()).toBe(20);
  left.abort();
  await events.return(undefined);
});

test('all lines come before the end, which is the last event', async () => {
  const { ofInvocation, row, hub } = invocation(25);
  const events = ofInvocation(readerUntil(new AbortController().signal));
  const seen: string[] = [];
  for await (const event of events) {
    seen.push(event.event === 'log' ? event.message : `${event.event} ${row.status}`);
    if (event.event !== 'invocation_state' || row.status !== 'running') continue;
    row.status = 'succeeded';
    queueMicrotask(() => hub.hear('state one'));
  }
  expect(seen).toHaveLength(27);
  expect(seen.slice(24)).toEqual(['line 25', 'invocation_state running', 'invocation_state succeeded']);
});

test('reading ends when the reader disconnects', async () => {
  const { ofInvocation } = invocation(0);
  const left = new AbortController();
  const events = ofInvocation(readerUntil(left.signal));
  expect((await events.next()).value).toMatchObject({ event: 'invocation_state' });
  const next = events.next();
  left.abort();
  expect(await next).toMatchObject({ done: true });
});

test('many readers of a project look at the database together about as often as a few', async () => {
  const { ofInvocation, hub, looks } = invocation(0);
  const left = new AbortController();
  const waking = setInterval(() => hub.hear('log one'), 1);
  const readers = Array.from({ length: 100 }, async () => {
    for await (const event of ofInvocation(readerUntil(left.signal))) expect(event.event).toBe('invocation_state');
  });
  await sleep(500);
  clearInterval(waking);
  left.abort();
  await Promise.all(readers);
  expect(looks()).toBeLessThan(300);
});

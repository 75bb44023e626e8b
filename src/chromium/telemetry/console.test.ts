import { expect, test } from 'vitest';
import type { EventData } from '../../lib/telemetry-events.ts';
import { consoleEvents } from './console.ts';
import type { Target, NewEvent } from './target.ts';
import type { Watch } from './watch.ts';

type Listener = (params: unknown, sessionId: string) => void;

/** A page with captured console calls. */
function page() {
  const listeners = new Map<string, Listener>();
  const events: NewEvent[] = [];
  const target = { sessionId: 'S', targetId: 'T', type: 'page', url: '', frames: new Map(), contexts: new Map() };
  consoleEvents({
    client: { on: (event: string, _is: unknown, listener: Listener) => listeners.set(event, listener) },
    targets: { get: () => ({ ...target, consoleIsLive: true }) as unknown as Target },
    emit: (one: NewEvent) => void events.push(one),
    captures: () => true,
  } as unknown as Watch);
  return {
    events,
    call: (params: object) => listeners.get('Runtime.consoleAPICalled')!({ type: 'log', args: [], ...params }, 'S'),
  };
}

/** The texts of all fields with this name, however deep. */
function allOf(name: string, value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    key === name && typeof inner === 'string' ? [inner] : allOf(name, inner),
  );
}

test('the addresses of a stack are captured up to 32 KiB together', () => {
  const { events, call } = page();
  const url = `http://a.test/?${'a=1&'.repeat(4000)}`;
  const callFrames = Array.from({ length: 50 }, () => ({ functionName: 'f', scriptId: '1', url, lineNumber: 1 }));
  const nested = (depth: number): object => ({ callFrames, ...(depth > 0 && { parent: nested(depth - 1) }) });
  call({ stackTrace: nested(4) });
  const urls = allOf('url', (events[0]!.data as EventData<'console_log'>).stack_trace);
  expect(urls).toHaveLength(250);
  expect(urls[0]).toBe(url);
  expect(urls.join('').length).toBeLessThan(33 * 1024);
});

test('the arguments of a call are captured up to 128 KiB together', () => {
  const { events, call } = page();
  call({ args: Array.from({ length: 60 }, () => ({ type: 'string', value: 'x'.repeat(8000) })) });
  const args = (events[0]!.data as EventData<'console_log'>).args!;
  expect(args).toHaveLength(50);
  expect(args[0]).toBe('x'.repeat(8000));
  expect(args.join('').length).toBeLessThan(129 * 1024);
});

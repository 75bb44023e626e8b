import { expect, test } from 'vitest';
import { fakeEngine } from '../../test/support/fake-engine.ts';
import { fakeTelemetry } from '../../test/support/fake-telemetry.ts';
import type { TelemetryCategory } from '../lib/telemetry.ts';

const capture = (...categories: TelemetryCategory[]) => new Set(categories);
const { engine } = fakeEngine();

test('the service attaches to the browser when a category needs it, and leaves when none does', async () => {
  const { telemetry, done } = fakeTelemetry();
  await telemetry.change(capture('control'), engine);
  expect(done).toEqual([]);
  await telemetry.change(capture('control', 'network'), engine);
  await telemetry.change(capture('console'), engine);
  telemetry.browserGone();
  await telemetry.browserBack(engine);
  await telemetry.change(capture('system'), engine);
  telemetry.browserGone();
  expect(done).toEqual(['collect control network', 'change console', 'browser gone', 'browser back', 'close']);
});

test('changes at once end with the last one, in the journal and in the browser', async () => {
  const { telemetry, journal, done } = fakeTelemetry();
  await Promise.all([telemetry.change(capture('page'), engine), telemetry.change(capture('network'), engine)]);
  expect([...journal.capture]).toEqual(['network']);
  expect(done.at(-1)).toBe('change network');
});

test('a collector that fails does not fail the session', async () => {
  const { telemetry } = fakeTelemetry({ change: () => Promise.reject(new Error('The page hangs.')) });
  await telemetry.change(capture('page'), engine);
  await telemetry.change(capture('network'), engine);
  expect([...telemetry.capture]).toEqual(['network']);
});

test('a shelved session captures nothing until its next holder captures something', async () => {
  const { telemetry, journal, done } = fakeTelemetry();
  await telemetry.change(capture('page'), engine);
  telemetry.shelve();
  expect(journal.capture.size).toBe(0);
  await telemetry.change(capture('page'), engine);
  telemetry.end();
  expect(done).toEqual(['collect page', 'end readers', 'close', 'collect page', 'close', 'end']);
});

test('passwords of every proxy that the session had are hidden', () => {
  const { telemetry, done } = fakeTelemetry();
  const proxy = { protocol: 'http', host: 'h', port: 1, bypassHosts: [] } as const;
  telemetry.hide(undefined);
  telemetry.hide(proxy);
  telemetry.hide({ ...proxy, login: { username: 'a', password: 'one' } });
  telemetry.hide({ ...proxy, login: { username: 'a', password: 'two' } });
  expect(done).toEqual(['hide one', 'hide two']);
});

test('typed values are hidden like passwords, in events and in lines of logs', () => {
  const { telemetry, done } = fakeTelemetry();
  telemetry.hideTyped(['one', 'two']);
  expect(done).toEqual(['hide one two']);
  expect(telemetry.clean(['a', 'b'])).toEqual(['clean a', 'clean b']);
});

test('a connection is reported when it begins and once when it ends, with what it was', () => {
  const { telemetry, events } = fakeTelemetry();
  const client = telemetry.visited('cdp');
  const viewer = telemetry.visited('viewer');
  client.message();
  client.message();
  client.over(1012);
  client.over();
  viewer.over();
  expect(events).toMatchObject([
    { type: 'cdp_connect' },
    { type: 'live_view_connect' },
    { type: 'cdp_disconnect', data: { message_count: 2, reason: 'upstream_changed' } },
    { type: 'live_view_disconnect', data: { session_id: events[1]!.data!['session_id'] } },
  ]);
});

test.each([
  [undefined, 'client_close'],
  [1001, 'context_cancelled'],
  [1011, 'upstream_error'],
  [1012, 'upstream_changed'],
])('a connection closed with %s ends for the reason %s', (code, reason) => {
  const { telemetry, events } = fakeTelemetry();
  telemetry.visited('cdp').over(code);
  expect(events.at(-1)).toMatchObject({ data: { reason } });
});

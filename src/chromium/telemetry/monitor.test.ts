import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { intoList } from '../../../test/support/fake-telemetry.ts';
import { silent } from '../../lib/log.ts';
import type { TelemetryCategory, TelemetryEvent } from '../../lib/telemetry.ts';
import { multiplex } from '../cdp/mux.ts';
import { openPipe } from '../cdp/pipe.ts';
import { collect } from './collector.ts';

/** A browser that accepts clients and refuses everything else. */
function refusingBrowser() {
  const toBrowser = new PassThrough();
  const fromBrowser = new PassThrough();
  toBrowser.on('data', (data: Buffer) => {
    for (const text of data.toString().split('\0').filter(Boolean)) {
      const { id, method, sessionId } = JSON.parse(text);
      const answer =
        method === 'Target.attachToBrowserTarget'
          ? { id, result: { sessionId: 'A'.repeat(32) } }
          : { id, error: { code: -32000, message: 'refused' }, sessionId };
      fromBrowser.write(`${JSON.stringify(answer)}\0`);
    }
  });
  return multiplex(openPipe(toBrowser, fromBrowser));
}

function collected(...capture: TelemetryCategory[]) {
  const events: TelemetryEvent[] = [];
  const collector = collect({
    mux: refusingBrowser(),
    capture: new Set(capture),
    sink: intoList(events),
    log: silent,
  });
  return { collector, reported: () => events.map(({ category, type, data }) => ({ category, type, data })) };
}

test('a capture that the browser refuses is reported', async () => {
  const { collector, reported } = collected('console');
  await collector.ready;
  expect(reported()).toEqual([
    { category: 'monitor', type: 'monitor_init_failed', data: { step: 'Target.setAutoAttach' } },
  ]);
  await collector.close();
});

test('a browser that is not replaced is reported', async () => {
  const { collector, reported } = collected('captcha');
  collector.browserGone();
  collector.browserLost();
  expect(reported()).toEqual([
    { category: 'monitor', type: 'monitor_disconnected', data: { reason: 'chrome_restarted' } },
    { category: 'monitor', type: 'monitor_reconnect_failed', data: { reason: 'reconnect_exhausted' } },
  ]);
  await collector.close();
});

test('categories that do not come from the browser make no client and no events', async () => {
  const { collector, reported } = collected('control', 'connection', 'system');
  await collector.ready;
  collector.browserGone();
  await collector.browserBack(refusingBrowser());
  expect(reported()).toEqual([]);
  await collector.close();
});

test('nothing is captured after the end', async () => {
  const { collector, reported } = collected('console');
  await collector.close();
  collector.browserGone();
  expect(reported()).toEqual([]);
});

import { afterAll, beforeAll, expect, test } from 'vitest';
import { measuredService, mostStopMs } from '../support/longest-stop.ts';
import { requireSandbox } from '../support/sandbox.ts';

await requireSandbox();

let service: Awaited<ReturnType<typeof measuredService>>;
let id: string;
beforeAll(async () => {
  service = await measuredService();
  const { body } = await service.call('POST', '/browsers', { headless: false, timeout_seconds: 600 });
  id = body.session_id;
});
afterAll(async () => await service?.close());

const path = Array.from({ length: 9 }, (_, i) => [10 + (i % 2) * 100, 10]);
/** A chord that a page does nothing with. */
const keys = Array<string>(100).fill(Array(16).fill('Shift').join('+'));

test.each([
  ['a drag of 80,000 steps', { drag_mouse: { path, smooth: false, steps_per_segment: 10_000, step_delay_ms: 0 } }, 1],
  ['a batch with 80,000 keys', { press_key: { keys } }, 50],
])('%s does not stop the service', { timeout: 300_000 }, async (_, action, times) => {
  const [type] = Object.keys(action);
  const actions = Array.from({ length: times }, () => ({ type, ...action }));
  const stop = await service.longestStop(async () => {
    const { status, text } = await service.call('POST', `/browsers/${id}/computer/batch`, { actions });
    expect(status, text).toBe(200);
  });
  expect(stop).toBeLessThan(mostStopMs);
});

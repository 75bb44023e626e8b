import { expect, test } from 'vitest';
import { fakeEngine } from '../../test/support/fake-engine.ts';
import { silent } from '../lib/log.ts';
import { admission } from './admission.ts';
import { sessionRoster } from './roster.ts';
import { sessionLaunching } from './session-launch.ts';

/** Launching on a node with one place and one spare. A request that is refused gets no further than its place. */
async function house() {
  const roster = sessionRoster();
  const unused = {} as never;
  const admitting = admission({
    store: unused,
    browsers: { start: async () => fakeEngine().engine, remove: async () => {} },
    roster,
    sessionCap: async () => null,
    capacity: 1,
    spares: { headless: 1, headful: 0 },
    disk: { path: '/data', short: () => false },
    relieve: () => undefined,
    offenders: { secondsLeft: () => 0 },
    log: silent,
  });
  admitting.fill();
  await expect.poll(() => admitting.counts().spares.headless).toBe(1);
  const { make } = sessionLaunching({
    store: unused,
    browsers: unused,
    profiles: unused,
    library: unused,
    proxies: unused,
    extensions: unused,
    roster,
    admission: admitting,
    ending: unused,
    asItIsNow: unused,
    guard: unused,
    telemetry: unused,
    collect: unused,
    refuseInvocation: async () => {},
    nodeId: 'node',
    events: unused,
    log: silent,
  });
  return { make, counts: admitting.counts, close: admitting.close };
}

test('a request that contradicts itself takes no place and no spare', async () => {
  const { make, counts, close } = await house();
  const before = counts();
  const telemetry = { enabled: false, browser: { console: { enabled: true } } };
  await expect(make('proj_test', { headless: true, telemetry }, {})).rejects.toMatchObject({ code: 'invalid_input' });
  expect(counts()).toEqual(before);
  await close();
});

import { expect, test } from 'vitest';
import { fakeEngine, proxyAt } from '../../test/support/fake-engine.ts';
import { fakeTelemetry } from '../../test/support/fake-telemetry.ts';
import { sessionRow } from '../../test/support/session-rows.ts';
import { silent } from '../lib/log.ts';
import { sessionLending } from './session-loans.ts';
import { liveSession } from './live-session.ts';
import { sessionRoster } from './roster.ts';

/** A pool's browser `s` on its shelf. */
function house() {
  const roster = sessionRoster();
  const published: unknown[] = [];
  const row = { deleted_at: null as Date | null };
  const fake = fakeEngine();
  const session = liveSession({
    id: 's',
    projectId: 'p',
    engine: fake.engine,
    timeoutSeconds: undefined,
    mayStandBy: false,
    proxy: undefined,
    telemetry: fakeTelemetry().telemetry,
    relaunch: () => Promise.reject(new Error('no')),
    onIdle() {},
    onLost() {},
    log: silent,
  });
  roster.live.set('s', session);
  const lending = sessionLending({
    store: { find: async (id) => sessionRow({ id, ...row }) },
    profiles: { choose: async (_project, { id }) => ({ id: `profile ${id}` }) as never },
    library: { choose: async (_project, wanted) => wanted.map(({ id }) => ({ id: `extension ${id}` })) as never },
    roster,
    make: async (_project, request, { pool }) => sessionRow({ id: 'made', name: request.name!, pool_id: pool.id }),
    toSession: (row, keyId) => ({ session_id: row.id, seen_by: keyId }) as never,
    events: { publish: (...facts: unknown[]) => void published.push(facts) } as never,
    log: silent,
  });
  return { ...lending, roster, session, published, row, fake };
}

const lease = { id: 'lease_1', timeoutSeconds: 60, startUrl: null };

test('a browser on the shelf is not for clients; lent it is, under its lease; taken back it is not again', async () => {
  const { lend, takeBack, leaseOf, roster, session, published, fake } = house();
  await expect(roster.hold('s')).rejects.toMatchObject({ code: 'session_not_found' });
  expect(leaseOf('s')).toBeNull();

  expect(await lend('s', lease, 'key')).toEqual({ session_id: 's', seen_by: 'key' });
  expect(fake.done).toEqual(['send Browser.getVersion']);
  expect(leaseOf('s')).toBe('lease_1');
  const held = await roster.hold('s');
  expect(held.until.aborted).toBe(false);

  expect(await takeBack('s', 'lease_0')).toBe('unknown');
  expect(held.until.aborted, 'only the end of its own lease ends a hold').toBe(false);
  expect(await takeBack('s', 'lease_1')).toBe('used'); // it was held
  expect(held.until.aborted).toBe(true);
  expect(leaseOf('s')).toBeNull();
  expect(published).toEqual([['session.returned', { sessionId: 's' }]]);
  await expect(roster.hold('s')).rejects.toMatchObject({ code: 'session_not_found' });
  held.release();
  await session.end('deleted');
});

test('a browser without any client is given back unused; with an opened page it is used', async () => {
  const { lend, takeBack, fake, session } = house();
  await lend('s', lease, 'key');
  expect(await takeBack('s', 'lease_1')).toBe('unused');
  await lend('s', { ...lease, startUrl: 'example.com' }, 'key');
  expect(await takeBack('s', 'lease_1')).toBe('used');
  expect(fake.done).toContain('open https://example.com');
  await session.end('deleted');
});

test('what its holder changed of the proxy goes with the lease', async () => {
  const { lend, takeBack, fake, session } = house();
  await lend('s', lease, 'key');
  await session.setProxy(proxyAt('holder'));
  await takeBack('s', 'lease_1');
  expect(fake.done.slice(-2)).toEqual(['proxy holder', 'proxy none']);
  await session.end('deleted');
});

test('an ended session is not lent, and keeps no hold; taking it back is no error', async () => {
  const { lend, takeBack, leaseOf, roster, session, row } = house();
  row.deleted_at = new Date();
  await expect(lend('s', lease, 'key')).rejects.toMatchObject({ code: 'session_not_found' });
  await session.end('retired');
  await expect(lend('s', lease, 'key')).rejects.toMatchObject({ code: 'session_not_found' });
  roster.live.delete('s');
  await expect(lend('s', lease, 'key')).rejects.toMatchObject({ code: 'session_not_found' });
  expect(await takeBack('s', 'lease_1')).toBe('unknown');
  expect(leaseOf('s')).toBeUndefined();
});

test('what a pool selects is resolved to ids; what it leaves out stays out, and null clears', async () => {
  const { resolve, makePooled } = house();
  expect(await resolve('p', {})).toEqual({});
  expect(await resolve('p', { profile: null })).toEqual({ profile_id: null });
  expect(await resolve('p', { profile: { id: 'a' }, extensions: [{ id: 'b' }] })).toEqual({
    profile_id: 'profile a',
    extension_ids: ['extension b'],
  });
  const made = await makePooled('p', { id: 'pool', version: 1 }, { name: 'x' }, () => {});
  expect(made).toMatchObject({ name: 'x', pool_id: 'pool' });
});

import { expect, test } from 'vitest';
import { asking, eachLoginTest, success, type LoginRoom, type LoginTestStore } from '../../test/support/logins/room.ts';
import { errors } from '../errors.ts';
import { newId } from '../lib/ids.ts';
import { orgStore } from '../org/store.ts';
import { sql } from '../store/sql.ts';
import type { FlowErrorCode, Health } from './flow/types.ts';
import { pausesSeconds } from './checks.ts';

let store: LoginTestStore;
let room: LoginRoom;
let other: LoginRoom;
let openRoom: (nodeId: string, slotMs: number) => LoginRoom;
eachLoginTest((opened, open) => {
  [store, openRoom] = [opened, open];
  [room, other] = [open(), open('node_b')];
});

/** A logged-in connection with a credential and a due check. */
async function loggedIn(settings: object = {}): Promise<string> {
  await store.db.rows(sql`insert into credentials (id, project_id, name, domain, value_keys)
    values ('c', 'proj', 'c', 'shop.example', '{username,password}') on conflict do nothing`);
  const { id } = await room.logins.create(asking, {
    domain: 'shop.example',
    profile_name: 'ann',
    credential: { name: 'c' },
    ...settings,
  });
  await store.db.rows(
    sql`update auth_connections set status = 'AUTHENTICATED', last_login_at = now() where id = ${id}`,
  );
  await due(id);
  return id;
}

const due = (id: string) => store.db.rows(sql`update auth_connections set next_check_at = now() where id = ${id}`);
const row = async (id: string) => (await room.connections.find('proj', id))!;
const secondsToCheck = async (id: string) => ((await row(id)).next_check_at.getTime() - Date.now()) / 1000;
const timeline = async (id: string) =>
  (await room.logins.timeline(asking, id, { limit: 20, offset: 0 })).map(({ type, status }) => `${type} ${status}`);

/** A tenth more or less, and some of it has passed. */
const about = (seconds: number) =>
  expect.toSatisfy((left: number) => left <= seconds * 1.1 && left > seconds * 0.9 - 40, `about ${seconds}`);

test('a profile that is still logged in is checked again after the interval, more or less', async () => {
  const id = await loggedIn({ health_check_interval: 1000 });
  await room.schedule.look();
  expect(await timeline(id)).toEqual(['health_check AUTHENTICATED']);
  expect(room.browsers.ended.map(({ save }) => save)).toEqual([false]);
  const seconds = await secondsToCheck(id);
  expect(seconds).toBeGreaterThan(800);
  expect(seconds).toBeLessThan(1101);
  expect((await room.logins.get(asking, id)).last_auth_check_at).toBeDefined();
  await room.schedule.look(); // nothing is due
  expect(await timeline(id)).toHaveLength(1);
});

test('a site that renews its cookies with each visit does not log the profile out by a check', async () => {
  const id = await loggedIn();
  await store.db.rows(sql`update auth_connections set post_login_url = 'https://shop.example/home' where id = ${id}`);
  const visited = async (health: Health, cookies: Record<string, string>) => {
    room.edge.health = async () => {
      room.browsers.cookies = cookies;
      return health;
    };
    await due(id);
    await room.schedule.look();
    return room.browsers.ended.at(-1)?.save;
  };
  expect(await visited('authenticated', { sid: '1' })).toBe(false);
  expect(await visited('authenticated', { sid: '2' })).toBe(true);
  expect(await visited('authenticated', { sid: '2', seen: '3' })).toBe(true);
  expect(room.browsers.opened).toEqual(['https://shop.example/home', 'https://shop.example/home']);
  expect(await visited('unknown', { sid: '4' })).toBe(false);

  // Once it is known which cookies a login sets, the others do not count.
  const success = { url: 'https://shop.example/', cookies: ['sid'], storage: [], signedInSigns: true };
  await store.db.rows(sql`update auth_connections set recipe = ${{ success }}::jsonb where id = ${id}`);
  expect(await visited('authenticated', { sid: '4', seen: '5' })).toBe(false);
  expect(await visited('authenticated', { sid: '6', seen: '5' })).toBe(true);
  room.browsers.notSaved = 'Another session saves to the profile.';
  expect(await visited('authenticated', { sid: '7' })).toBe(true);
  expect(await row(id)).toMatchObject({ status: 'AUTHENTICATED', failures: 0 });
});

test('a site that renews a token in its storage does not log the profile out by a check', async () => {
  const id = await loggedIn();
  const visited = async (storage: string, cookies: Record<string, string>) => {
    room.edge.health = async () => {
      Object.assign(room.browsers, { storage, cookies });
      return 'authenticated';
    };
    await due(id);
    await room.schedule.look();
    return room.browsers.ended.at(-1)?.save;
  };
  const success = { url: 'https://shop.example/', cookies: [], storage: ['https://shop.example'], signedInSigns: true };
  await store.db.rows(sql`update auth_connections set recipe = ${{ success }}::jsonb where id = ${id}`);
  expect(await visited('1', { seen: '2' })).toBe(false); // the login has set no cookie
  expect(await visited('2', { seen: '2' })).toBe(true);
  await store.db.rows(
    sql`update auth_connections set recipe = ${{ success: { ...success, storage: [] } }}::jsonb where id = ${id}`,
  );
  expect(await visited('3', { seen: '2' })).toBe(false);
});

test('a profile that is logged out is logged in again without a person', async () => {
  const id = await loggedIn();
  room.edge.health = async () => 'needs_auth';
  await room.schedule.look();
  expect(await timeline(id)).toEqual(['reauth SUCCESS', 'health_check NEEDS_AUTH']);
  expect(room.browsers.ended.map(({ save }) => save)).toEqual([false, true]);
  expect(await room.logins.get(asking, id)).toMatchObject({
    status: 'AUTHENTICATED',
    flow_type: 'REAUTH',
    flow_status: 'SUCCESS',
  });
  expect(await secondsToCheck(id)).toBeGreaterThan(3000);
});

test.each<[string, object]>([
  ['auto_reauth is off', { auto_reauth: false }],
  ['there is no credential', { credential: undefined }],
])('a profile that is logged out needs a person when %s', async (_, settings) => {
  const id = await loggedIn(settings);
  room.edge.health = async () => 'needs_auth';
  await room.schedule.look();
  expect(await timeline(id)).toEqual(['health_check NEEDS_AUTH']);
  expect(await room.logins.get(asking, id)).toMatchObject({ status: 'NEEDS_AUTH', flow_status: null });
});

test('nothing is checked when checks are off, or before the first login', async () => {
  const off = await loggedIn({ health_checks: false });
  const never = await loggedIn({ profile_name: 'bob' });
  await store.db.rows(sql`update auth_connections set status = 'NEEDS_AUTH' where id = ${never}`);
  await room.schedule.look();
  expect([await timeline(off), await timeline(never)]).toEqual([[], []]);
});

/** Each round until the schedule stops retrying. */
async function rounds(id: string, health: Health, code?: FlowErrorCode) {
  room.edge.health = async () => health;
  room.edge.flow = async () => ({ status: 'FAILED', errorCode: code, typed: {} });
  const pauses: number[] = [];
  for (let count = 0; count < 5 && (await row(id)).status === 'AUTHENTICATED'; count++) {
    await due(id);
    await room.schedule.look();
    if ((await row(id)).status === 'AUTHENTICATED') pauses.push(await secondsToCheck(id));
  }
  return pauses;
}
test('a login that fails for a passing reason is tried again, with longer and longer pauses, and then needs a person', async () => {
  const id = await loggedIn();
  expect(await rounds(id, 'needs_auth', 'network_error')).toEqual(pausesSeconds.map(about));
  expect(await row(id)).toMatchObject({ status: 'NEEDS_AUTH', failures: 0 });
  expect((await timeline(id)).filter((entry) => entry === 'reauth FAILED')).toHaveLength(pausesSeconds.length + 1);
});

test('a password that is refused is not tried again', async () => {
  const id = await loggedIn();
  expect(await rounds(id, 'needs_auth', 'credentials_invalid')).toEqual([]);
  expect(await timeline(id)).toEqual(['reauth FAILED', 'health_check NEEDS_AUTH']);
});

test('a site that cannot be judged is looked at sooner, three times, and then logged in to, which changes nothing while that cannot be judged either', async () => {
  const id = await loggedIn();
  expect(await rounds(id, 'unknown')).toEqual([...pausesSeconds, 3600, 3600].map(about));
  expect((await row(id)).status).toBe('AUTHENTICATED');
  const checks = await room.logins.timeline(asking, id, { limit: 20, offset: 0, type: 'health_check' });
  expect(checks[0]).toMatchObject({
    status: 'AUTHENTICATED',
    error_code: 'network_error',
    error_message: 'The site did not show whether the profile is logged in. So it looks.',
  });
  expect((await timeline(id)).filter((entry) => entry.startsWith('reauth'))).toHaveLength(3);
});

test('after three checks that could not tell, the connection says why, and a login finds out', async () => {
  const id = await loggedIn();
  const shown = () => room.logins.get(asking, id);
  let logins = 0;
  room.edge.health = async () => 'unknown';
  room.edge.flow = async () => (++logins, { status: 'FAILED', errorCode: 'network_error', typed: {} });
  for (const seen of [1, 2]) {
    await due(id);
    await room.schedule.look();
    expect([seen, logins, (await shown()).error_message]).toEqual([seen, 0, null]);
  }
  await due(id);
  await room.schedule.look();
  expect(logins).toBe(1);
  expect(await shown()).toMatchObject({
    status: 'AUTHENTICATED',
    error_code: 'network_error',
    error_message:
      'At least 3 checks in a row could not tell. The site did not show whether the profile is logged in. So it looks.',
  });

  room.edge.flow = async () => success;
  await due(id);
  await room.schedule.look();
  expect(await shown()).toMatchObject({ status: 'AUTHENTICATED', error_code: null, error_message: null });

  // A site that refuses the login has logged the profile out.
  room.edge.flow = async () => ({ status: 'FAILED', errorCode: 'credentials_invalid', typed: {} });
  for (let checks = 0; checks < 3; checks++) {
    await due(id);
    await room.schedule.look();
  }
  expect(await shown()).toMatchObject({ status: 'NEEDS_AUTH', error_code: 'credentials_invalid' });
});

test('a browser that does not start says nothing about the login', async () => {
  const id = await loggedIn();
  room.browsers.refusal = new Error('No browser.');
  await room.schedule.look();
  expect(await row(id)).toMatchObject({ status: 'AUTHENTICATED', failures: 1 });
});

test('a node without a place for a browser tries again soon, and counts nothing', async () => {
  const id = await loggedIn();
  room.browsers.refusal = errors.capacity_exhausted({ running: 1, most: 1 });
  for (let count = 0; count < pausesSeconds.length + 2; count++) {
    await due(id);
    await room.schedule.look();
    expect(await secondsToCheck(id)).toEqual(about(pausesSeconds[0]!));
  }
  expect(await timeline(id)).toEqual([]);
  room.browsers.refusal = undefined;
  room.edge.health = async () => {
    room.browsers.refusal = errors.capacity_exhausted({ running: 1, most: 1 }); // the place is taken before the login begins
    return 'needs_auth';
  };
  await due(id);
  await room.schedule.look();
  expect(await row(id)).toMatchObject({ status: 'AUTHENTICATED', failures: 0 });
  expect(await secondsToCheck(id)).toEqual(about(pausesSeconds[0]!));
});

test('what happens to a connection during its check counts more than the check', async () => {
  const id = await loggedIn({ credential: undefined });
  room.edge.health = async () => {
    await room.connections.learn(id, {
      event: 'logged_in',
      loggedIn: true,
      nextCheckAt: new Date(Date.now() + 1e6),
    });
    return 'needs_auth';
  };
  await room.schedule.look();
  expect(await row(id)).toMatchObject({ status: 'AUTHENTICATED' });
  expect(await timeline(id)).toEqual([]);

  room.edge.health = async () => {
    await room.logins.update(asking, id, { health_check_interval: 300, auto_reauth: false });
    return 'authenticated';
  };
  await due(id);
  await room.schedule.look();
  expect(await secondsToCheck(id)).toEqual(about(300));

  room.edge.health = async () => {
    await room.logins.remove(asking, id);
    return 'needs_auth';
  };
  await due(id);
  await room.schedule.look();
  expect(await store.db.rows(sql`select id from auth_runs`)).toEqual([]);
});

test('the connections of one profile are checked one after the other', async () => {
  const ids = [await loggedIn(), await loggedIn({ domain: 'other.example' })];
  const claim = (name: string) => room.claims.claimDue(name, 'node_a', 60);
  const first = await claim('first');
  expect(await claim('second')).toBeUndefined();
  await room.claims.releaseClaim(first!.id, 'first');
  await store.db.rows(
    sql`update auth_connections set next_check_at = now() + interval '1 hour' where id = ${first!.id}`,
  );
  expect((await claim('second'))?.id).toBe(ids.find((id) => id !== first!.id));
});

test('one node checks a connection at a time, and another takes over when the claim has lapsed', async () => {
  const id = await loggedIn();
  let finish!: (health: Health) => void;
  let begun!: () => void;
  const checking = new Promise<void>((resolve) => (begun = resolve));
  room.edge.health = () => {
    begun();
    return new Promise((resolve) => (finish = resolve));
  };
  const first = room.schedule.look();
  await checking;
  await other.schedule.look();
  expect(await timeline(id)).toEqual([]);

  // The first node falls silent: nothing renews its claim.
  await store.db.rows(
    sql`update auth_connections set claim_id = 'lapsed', claimed_until = now() - interval '1 second'`,
  );
  await other.schedule.look();
  expect(await timeline(id)).toEqual(['health_check AUTHENTICATED']);
  finish('authenticated');
  await first;
});

test('logins that wait for a person do not hold up the checks of others', async () => {
  const patient = openRoom('node_c', 1);
  const ids = [];
  for (const profile_name of ['a', 'b', 'c', 'd']) ids.push(await loggedIn({ profile_name }));
  let waiting = 0;
  patient.edge.health = async () => 'needs_auth';
  patient.edge.flow = ({ signal }) => {
    waiting++;
    return new Promise((resolve) => signal.addEventListener('abort', () => resolve({ status: 'CANCELED', typed: {} })));
  };
  const looking = patient.schedule.look();
  await expect.poll(() => waiting, { timeout: 60_000 }).toBe(ids.length); // more than are checked at a time
  await patient.close();
  await looking;
});

/** Connections of one project that are due for an hour, and one of another project that is due now. */
async function dueInTwoProjects(count: number): Promise<string> {
  for (let at = 0; at < count; at++) await loggedIn({ profile_name: `ann${at}` });
  await store.db.rows(sql`update auth_connections set next_check_at = now() - interval '1 hour'`);
  const projectId = newId();
  await orgStore(store.db).insertProject(projectId, projectId);
  const { id } = await room.logins.create({ ...asking, projectId }, { domain: 'shop.example', profile_name: 'x' });
  await store.db.rows(
    sql`update auth_connections set status = 'AUTHENTICATED', last_login_at = now(), next_check_at = now() where id = ${id}`,
  );
  return id;
}

test('the checks of a project with many connections do not come before those of all others', async () => {
  const id = await dueInTwoProjects(8);
  const checkedBefore = async () =>
    (await store.db.rows(sql`select id from auth_runs where connection_id = ${id}`)).length;
  const seen: number[] = [];
  room.edge.health = async () => {
    seen.push(await checkedBefore());
    return 'authenticated';
  };
  await room.schedule.look();
  expect(seen).toHaveLength(9);
  expect(seen.indexOf(1)).toBeGreaterThan(0);
  expect(seen.indexOf(1)).toBeLessThan(6); // two are checked at a time
});

test('checks that wait leave room for those of another project', async () => {
  const id = await dueInTwoProjects(12);
  const patient = openRoom('node_c', 1);
  let waiting = 0;
  patient.edge.health = async () => 'needs_auth';
  patient.edge.flow = ({ signal }) => {
    waiting++;
    return new Promise((resolve) => signal.addEventListener('abort', () => resolve({ status: 'CANCELED', typed: {} })));
  };
  const looking = patient.schedule.look();
  const runs = () => store.db.rows(sql`select id from auth_runs where connection_id = ${id}`);
  await expect.poll(async () => (await runs()).length, { timeout: 60_000 }).toBe(1);
  expect(waiting).toBeLessThanOrEqual(4);
  await patient.close();
  await looking;
});

test('the timeline of a connection has a thousand entries at most, and its newest login stays', async () => {
  const id = await loggedIn();
  await store.db
    .rows(sql`insert into auth_runs (id, connection_id, profile_id, kind, status, node_id, started_at, ended_at)
    select 'run_' || n, ${id}, 'p', case when n <= 2 then 'login' else 'health_check' end, 'SUCCESS', 'node_a',
      now() - interval '2 days' + n * interval '1 second', now()
    from generate_series(1, 1100) n`);
  await room.schedule.look();
  const kept = await store.db.rows<{ id: string }>(
    sql`select id from auth_runs where connection_id = ${id} order by started_at`,
  );
  expect(kept).toHaveLength(1001);
  expect(kept.slice(0, 2).map((one) => one.id)).toEqual(['run_2', 'run_102']);
});

test('what a lost node checked is due at once, and its logins have failed', async () => {
  const id = await loggedIn();
  room.edge.health = async () => 'needs_auth';
  let begun!: () => void;
  const running = new Promise<void>((resolve) => (begun = resolve));
  room.edge.flow = ({ signal }) => {
    begun();
    return new Promise((resolve) => signal.addEventListener('abort', () => resolve({ status: 'CANCELED', typed: {} })));
  };
  const lost = room.schedule.look();
  await running;
  const ended = await other.runs.endAllOf('node_a', 'The node is gone.');
  expect(ended).toHaveLength(1);
  await other.claims.releaseClaimsOf('node_a');
  other.edge.health = async () => 'needs_auth';
  other.edge.flow = async () => success;
  await other.schedule.look();
  expect(await timeline(id)).toEqual([
    'reauth SUCCESS',
    'health_check NEEDS_AUTH',
    'reauth FAILED',
    'health_check NEEDS_AUTH',
  ]);
  expect(await row(id)).toMatchObject({ status: 'AUTHENTICATED' });
  await room.runner.look(); // the first node is back, and sees that its login is over
  await lost;
  expect(room.browsers.ended.at(-1)).toMatchObject({ save: false });
});

test('a login that its node forgot is ended by any node', async () => {
  const id = await loggedIn();
  const { profile_id: profileId } = await row(id);
  await room.runs.begin({
    id: 'run',
    connectionId: id,
    profileId,
    kind: 'login',
    previousStatus: 'NEEDS_AUTH',
    nodeId: 'node_c',
    keyId: null,
    seconds: -120,
  });
  await other.schedule.look(); // not while a login runs with the profile
  expect(await timeline(id)).toEqual(['login IN_PROGRESS']);
  await other.schedule.sweep();
  await other.schedule.look();
  expect(await timeline(id)).toEqual(expect.arrayContaining(['login EXPIRED', 'health_check AUTHENTICATED']));
});

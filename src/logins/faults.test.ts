import { expect, test } from 'vitest';
import { asking, eachLoginTest, success, type LoginRoom, type LoginTestStore } from '../../test/support/logins/room.ts';
import { loginState } from '../../test/support/logins/states.ts';
import { newRow } from '../../test/support/session-rows.ts';
import { sessionStore } from '../sessions/store.ts';
import { sql } from '../store/sql.ts';
import { abandon, reasons } from './abandoned.ts';
import type { Passkey } from './flow/types.ts';
import { inputStore } from './input-store.ts';
import { runStore } from './run-store.ts';
import { connectionStore } from './store.ts';

let store: LoginTestStore;
let room: LoginRoom;
let openRoom: (nodeId?: string) => LoginRoom;
eachLoginTest((opened, open) => {
  [store, openRoom] = [opened, open];
  room = open();
});

const create = (more: object = {}) =>
  room.logins.create(asking, { domain: 'shop.example', profile_name: 'ann', ...more });
const get = (id: string) => room.logins.get(asking, id);
const refused = (code: string) => expect.objectContaining({ code });
async function succeeds(id: string): Promise<void> {
  await expect.poll(async () => (await get(id)).flow_status, { timeout: 60_000 }).toBe('SUCCESS');
}

/** A record of a look at a page. */
const note = {
  at: '',
  state: 'looking',
  url: '',
  title: '',
  decision: '',
  evidence: [],
  fields: [],
  choices: [],
  next: [],
};

/** A login that has asked a person, and waits. */
async function asks(id: string): Promise<void> {
  let asked!: () => void;
  const isWaiting = new Promise<void>((resolve) => (asked = resolve));
  room.edge.flow = async ({ report, input, signal }) => {
    await report(loginState());
    asked();
    try {
      await input({ signal, codes: false });
    } catch {
      return { status: 'CANCELED', typed: {} };
    }
    return success;
  };
  await room.logins.login(asking, id, {});
  await isWaiting;
}

test('large columns are read only where they are used', async () => {
  const { id } = await create();
  const recipe = { success: {}, steps: [{ fills: [{ key: 'password', label: 'Word', selectors: ['#word'] }] }] };
  await store.db.rows(sql`update auth_connections set recipe = ${recipe}::jsonb where id = ${id}`);
  await asks(id);
  const [run] = await store.db.rows<{ id: string; profile_id: string }>(sql`select id, profile_id from auth_runs`);
  await store.db.rows(sql`update auth_runs set explained = '[{"state": "looking"}]'::jsonb`);
  const [runs, connections] = [runStore(store.db), connectionStore(store.db)];
  const filter = { limit: 10, offset: 0, domain: null };
  const rows = [
    await inputStore(store.db).lock(run!.id),
    await runs.find(run!.id),
    await runs.underWayWith(run!.profile_id),
    await runs.end(run!.id, { status: 'CANCELED' }),
    await connections.find('proj', id),
    ...(await connections.list('proj', filter)),
  ];
  for (const row of rows) {
    expect(row).toBeDefined();
    expect(row).not.toHaveProperty('explained');
    expect(row).not.toHaveProperty('recipe');
  }
  expect(rows.at(-1)).toMatchObject({ fills: [{ key: 'password', label: 'Word' }] });
  expect(await connections.recipe(id)).toEqual(recipe);
});

test('the records of a login have 64 Ki characters at most, and the newest keep their pages', async () => {
  const { id } = await create();
  const large = (at: number) => ({
    ...note,
    decision: `${at}`,
    evidence: ['x'.repeat(2000)],
    page: { frames: [{ url: 'x'.repeat(15_000), main: true, elements: [], texts: [] }] },
  });
  room.edge.flow = async ({ record }) => {
    for (let at = 1; at <= 20; at++) record(large(at));
    return success;
  };
  await room.logins.login(asking, id, {});
  await succeeds(id);
  const explained = async () => (await room.logins.explain(asking, id)).records;
  await expect.poll(async () => (await explained()).at(-1)?.decision).toBe('20');
  const records = await explained();
  expect(JSON.stringify(records).length).toBeLessThan(66_000);
  expect(records.map(({ page }) => page !== undefined)).toEqual([
    ...Array<boolean>(6).fill(false),
    ...Array<boolean>(3).fill(true),
  ]);
});

test('a service that was killed during a login leaves the profile as it was, and the next login runs', async () => {
  const { id } = await create();
  await asks(id);
  await room.logins.pushCode(asking, id, '123456'); // is never taken
  const killed = room;
  // The same node again, with the same database and nothing in memory.
  room = openRoom();
  expect(await store.db.transaction((tx) => abandon(room.inputs, 'node_a', reasons.restarted, tx))).toBe(1);
  expect(await get(id)).toMatchObject({
    status: 'NEEDS_AUTH',
    flow_status: 'FAILED',
    error_code: 'browser_error',
    error_message: expect.stringContaining('restarted'),
    fields: null,
  });
  expect(await store.db.rows(sql`select id from auth_inputs`)).toEqual([]);
  expect(await store.db.rows(sql`select id from profiles where version_id is not null`)).toEqual([]);
  await expect(room.logins.submit(asking, id, { field_values: { password: 'x' } })).rejects.toEqual(
    refused('no_active_flow'),
  );

  await room.logins.login(asking, id, {});
  await succeeds(id);
  expect(room.browsers.ended).toEqual([{ sessionId: expect.any(String), save: true }]);
  // If the old process was only out of reach, it finds its login over and saves nothing.
  await killed.runner.look();
  await killed.close();
  expect(killed.browsers.ended).toEqual([{ sessionId: expect.any(String), save: false }]);
  expect(await get(id)).toMatchObject({ status: 'AUTHENTICATED', flow_status: 'SUCCESS' });
});

test('a connection that is deleted during a submit, a pushed code or a login leaves nothing sealed behind', async () => {
  for (let count = 0; count < 5; count++) {
    const { id } = await create();
    await asks(id);
    const outcomes = await Promise.allSettled([
      room.logins.submit(asking, id, { field_values: { password: 'x' } }),
      room.logins.pushCode(asking, id, '1'),
      room.logins.remove(asking, id),
      room.logins.pushCode(asking, id, '2'),
    ]);
    for (const outcome of outcomes)
      if (outcome.status === 'rejected')
        expect(outcome.reason).toEqual(
          expect.objectContaining({ code: expect.stringMatching(/no_active_flow|connection_not_found/) }),
        );
    await expect.poll(() => room.runner.count, { timeout: 60_000 }).toBe(0);
    expect(await store.db.rows(sql`select kind from secrets`)).toEqual([]);
  }
});

test('a login keeps no passkey if its connection is deleted, and does not begin for a deleted connection', async () => {
  const { id } = await create();
  const { profile_id: profileId } = (await room.connections.find('proj', id))!;
  room.edge.flow = async () => {
    await store.db.rows(sql`delete from auth_connections where id = ${id}`);
    return { ...success, passkeys: [{ credentialId: 'c' } as Passkey] };
  };
  await room.logins.login(asking, id, {});
  await expect.poll(() => room.browsers.ended, { timeout: 60_000 }).toEqual([expect.objectContaining({ save: false })]);
  await expect.poll(() => room.runner.count, { timeout: 60_000 }).toBe(0);
  const flow = {
    id: 'run',
    connectionId: id,
    profileId,
    kind: 'login' as const,
    previousStatus: 'NEEDS_AUTH' as const,
  };
  await expect(room.runs.begin({ ...flow, nodeId: 'node_a', keyId: null, seconds: 60 })).rejects.toEqual(
    refused('connection_not_found'),
  );
});

test('a passkey that a site has is sealed however its login ended, and the next login is given it', async () => {
  const { id } = await create();
  const passkey: Passkey = {
    credentialId: 'c',
    rpId: 'shop.example',
    privateKey: 'planted-private-key',
    signCount: 1,
    isResidentCredential: true,
  };
  room.edge.flow = async () => ({ status: 'FAILED', errorCode: 'website_error', typed: {}, passkeys: [passkey] });
  await room.logins.login(asking, id, {});
  await expect.poll(() => room.runner.count, { timeout: 60_000 }).toBe(0);
  const [sealed] = await store.db.rows<{ row: string }>(sql`select s::text as row from secrets s`);
  expect(sealed!.row).not.toContain(passkey.privateKey);
  expect(sealed!.row).not.toContain(Buffer.from(passkey.privateKey).toString('hex'));

  let given: Passkey[] | undefined;
  room.edge.flow = async ({ passkeys }) => {
    given = passkeys;
    return success;
  };
  await room.logins.login(asking, id, {});
  await succeeds(id);
  expect(given).toEqual([passkey]);
  await room.logins.remove(asking, id);
});

/** A database that refuses the end of a login. */
async function withoutEnds(work: () => Promise<void>): Promise<void> {
  await store.db.rows(sql`create function take_no_end() returns trigger language plpgsql as
    $$ begin raise 'The disk is full.'; end $$`);
  await store.db.rows(sql`create trigger take_no_end before update on auth_runs for each row
    when (new.status <> 'IN_PROGRESS') execute function take_no_end()`);
  try {
    await work();
  } finally {
    await store.db.rows(sql`drop function take_no_end() cascade`);
  }
}

test('a login that failed while the database took no writes is ended when it takes them again', async () => {
  const { id } = await create();
  room.browsers.refusal = new Error('No browser.');
  await withoutEnds(async () => {
    await expect(room.logins.login(asking, id, {})).rejects.toThrow('No browser.');
    expect(await get(id)).toMatchObject({ flow_status: 'IN_PROGRESS' });
    await expect(room.runner.look()).rejects.toThrow('The disk is full.');
  });
  await room.runner.look();
  expect(await get(id)).toMatchObject({ flow_status: 'FAILED', error_code: 'browser_error' });
  room.browsers.refusal = undefined;
  await room.logins.login(asking, id, {});
  await succeeds(id);
});

test('a login that succeeded while the database took no writes has succeeded when it takes them again', async () => {
  const { id } = await create();
  await withoutEnds(async () => {
    await room.logins.login(asking, id, {});
    await expect.poll(() => room.runner.count, { timeout: 60_000 }).toBe(0);
    expect(await get(id)).toMatchObject({ status: 'NEEDS_AUTH', flow_status: 'IN_PROGRESS' });
  });
  await room.runner.look();
  expect(await get(id)).toMatchObject({ status: 'AUTHENTICATED', flow_status: 'SUCCESS' });
});

test('the text of a page that the database does not store ends its own login, with the rest of the text', async () => {
  const { id } = await create();
  room.edge.flow = async ({ report, record }) => {
    const state = loginState();
    await report({ ...state, websiteError: 'Wrong\0', fields: [{ ...state.fields[0]!, label: 'Name \ud83d' }] });
    record({ ...note, title: 'Shop \udc00\0' });
    const end = { status: 'FAILED', errorCode: 'captcha_blocked', errorMessage: 'The site said so.\0' } as const;
    return { ...end, websiteError: 'This account is locked.\0', typed: {} };
  };
  await room.logins.login(asking, id, {});
  await expect.poll(() => room.runner.count, { timeout: 60_000 }).toBe(0);
  await room.runner.look();
  expect(await get(id)).toMatchObject({
    flow_status: 'FAILED',
    error_code: 'captcha_blocked',
    website_error: 'This account is locked.\ufffd',
  });
  expect((await room.logins.explain(asking, id)).records).toMatchObject([{ title: 'Shop \ufffd\ufffd' }]);

  const cut = 'https://shop.example/\ud83d';
  const recipe = { steps: [{ fills: [{ key: 'password', label: cut, selectors: [cut] }] }] } as never;
  room.edge.flow = async () => ({ ...success, postLoginUrl: cut, recipe });
  await room.logins.login(asking, id, {});
  await succeeds(id);
});

test('an end that the database refuses holds up no other, and one with a value that it never takes becomes a failure', async () => {
  const refused = await create();
  const invalid = await create({ domain: 'invalid.example', profile_name: 'eve' });
  const other = await create({ domain: 'other.example', profile_name: 'bob' });
  const waiting = await create({ domain: 'waiting.example', profile_name: 'dan' });
  await asks(waiting.id);
  room.edge.flow = async () => success;
  await withoutEnds(async () => {
    for (const { id } of [refused, invalid, other]) await room.logins.login(asking, id, {});
    await expect.poll(() => room.runner.count, { timeout: 60_000 }).toBe(1);
  });
  await store.db.rows(sql`create function take_some() returns trigger language plpgsql as $$ begin
      if exists (select from auth_connections where id = new.connection_id and domain = 'shop.example') then raise 'Not now.'; end if;
      if new.status = 'SUCCESS' and exists (select from auth_connections where id = new.connection_id and domain = 'invalid.example')
        then raise 'Not this.' using errcode = '22P05'; end if;
      return new;
    end $$`);
  await store.db.rows(sql`create trigger take_some before update on auth_runs for each row
    when (new.status <> 'IN_PROGRESS') execute function take_some()`);
  await store.db.rows(
    sql`update auth_runs set ended_at = now(), status = 'CANCELED' where connection_id = ${waiting.id}`,
  );
  await expect(room.runner.look()).rejects.toThrow('Not now.');
  await expect.poll(() => room.runner.count, { timeout: 60_000 }).toBe(0); // the login that was ended elsewhere stopped
  expect(await get(other.id)).toMatchObject({ status: 'AUTHENTICATED', flow_status: 'SUCCESS' });
  expect(await get(invalid.id)).toMatchObject({ flow_status: 'FAILED', error_code: 'internal_error' });
  await store.db.rows(sql`drop function take_some() cascade`);
  await room.runner.look();
  expect(await get(refused.id)).toMatchObject({ status: 'AUTHENTICATED', flow_status: 'SUCCESS' });
});

test('of several logins that begin at once, one runs', async () => {
  const { id } = await create();
  room.edge.flow = ({ signal }) =>
    new Promise((resolve) => signal.addEventListener('abort', () => resolve({ status: 'CANCELED', typed: {} })));
  const begun = await Promise.allSettled(Array.from({ length: 4 }, () => room.logins.login(asking, id, {})));
  expect(begun.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  for (const one of begun) if (one.status === 'rejected') expect(one.reason).toEqual(refused('flow_in_progress'));
  expect(room.runner.count).toBe(1);
});

test('a login that begins while the node looks for logins ended elsewhere continues', async () => {
  const { id: waiting } = await create();
  await asks(waiting);
  // The answer about the logins under way arrives late.
  const { rows } = store.db;
  let [asked, late] = [() => {}, () => {}];
  const isAsked = new Promise<void>((resolve) => (asked = resolve));
  const answered = new Promise<void>((resolve) => (late = resolve));
  store.db.rows = async (query) => {
    const found = await rows.call(store.db, query);
    if (/attended\s+from auth_runs/.test(query.text)) {
      asked();
      await answered;
    }
    return found as never;
  };
  const look = room.runner.look();
  await isAsked;
  store.db.rows = rows;

  const { id } = await create({ domain: 'other.example', profile_name: 'bob' });
  await asks(id);
  late();
  await look;
  expect(await get(id)).toMatchObject({ flow_status: 'IN_PROGRESS', flow_step: 'AWAITING_INPUT' });
  expect(room.runner.count).toBe(2);
  await room.logins.submit(asking, id, { field_values: { password: 'x' } });
  await succeeds(id);
});

test('changes that are made at once all hold', async () => {
  const { id } = await create();
  await Promise.all([
    room.logins.update(asking, id, { auto_reauth: false }),
    room.logins.update(asking, id, { health_check_interval: 400 }),
    room.logins.update(asking, id, { save_credentials: false }),
    room.connections.learn(id, { takesCodes: true }),
  ]);
  expect(await get(id)).toMatchObject({ auto_reauth: false, health_check_interval: 400, save_credentials: false });
});

test('what a person typed is not kept when that was switched off during the login, nor in another credential', async () => {
  for (const name of ['a', 'b'])
    await store.db.rows(sql`insert into credentials (id, project_id, name, domain, value_keys)
      values (${name}, 'proj', ${name}, 'shop.example', '{username}')`);
  const { id } = await create({ credential: { name: 'a' } });
  const typing = (change: object) => {
    room.edge.flow = async () => {
      await room.logins.update(asking, id, change);
      return { ...success, typed: { password: 'p' } };
    };
  };
  typing({ credential: { name: 'b' } });
  await room.logins.login(asking, id, {});
  await succeeds(id);
  expect(room.edge.saved).toEqual([]);
  expect((await get(id)).credential).toEqual({ name: 'b' });
  typing({ save_credentials: false });
  await room.logins.login(asking, id, {});
  await succeeds(id);
  expect(room.edge.saved).toEqual([]);
});

test('telemetry hides secret values under any name, and a login has 20 minutes in all', async () => {
  await store.db.rows(sql`insert into credentials (id, project_id, name, domain, value_keys)
    values ('a', 'proj', 'a', 'shop.example', '{username}')`);
  const { id } = await create({ credential: { name: 'a' } });
  room.edge.values = { username: 'ann', login_password: 'p1', 'account pin': '1234', tenant: 'acme' };
  const asked = loginState();
  const answer = {
    ...asked.fields[1]!,
    id: 'name_of_your_pet',
    type: 'text' as const,
    key: 'security_answer' as const,
  };
  const values = { identifier: 'ann', password: 'p2', name_of_your_pet: 'rex' };
  let total = 0;
  room.edge.flow = async ({ credential, report, input, signal, deadlines }) => {
    total = deadlines!.total!;
    await credential();
    await report({ ...asked, fields: [...asked.fields, answer] });
    await input({ signal, codes: false });
    return success;
  };
  await room.logins.login(asking, id, {});
  await expect.poll(async () => (await get(id)).flow_step, { timeout: 60_000 }).toBe('AWAITING_INPUT');
  await room.logins.submit(asking, id, { field_values: values });
  await succeeds(id);
  expect(room.browsers.hidden.sort()).toEqual(['1234', 'p1', 'p2', 'rex']);
  expect(total).toBeLessThanOrEqual(20 * 60_000);
  expect(total).toBeGreaterThan(0);
});

test('a reader of events that leaves is released, and the invitee of a replaced login is refused', async () => {
  const { id } = await create();
  const leaving = new AbortController();
  const waits = room.logins.follow(asking, id, leaving.signal).next(); // no login yet
  leaving.abort();
  expect(await waits).toMatchObject({ done: true });

  await asks(id);
  const first = (await room.runs.latest([id])).get(id)!;
  const states = room.logins.follow({ ...asking, flowId: first.id }, id, new AbortController().signal);
  expect((await states.next()).value).toMatchObject({ flow_step: 'AWAITING_INPUT' });
  await store.db.rows(sql`update auth_runs set expires_at = now() - interval '1 second' where id = ${first.id}`);
  room.edge.flow = async () => success;
  await room.logins.login(asking, id, {});
  await expect(
    (async () => {
      for await (const state of states) expect(state.flow_status).not.toBe('SUCCESS');
    })(),
  ).rejects.toEqual(refused('unauthorized'));
});

test('a service that stops releases its readers of events, and reports the end of its own logins to theirs', async () => {
  const follow = (id: string) => room.logins.follow(asking, id, new AbortController().signal);
  const here = await create();
  await asks(here.id);
  const elsewhere = await create({ profile_name: 'bob' });
  await asks(elsewhere.id);
  await store.db.rows(sql`update auth_runs set node_id = 'node_b' where connection_id = ${elsewhere.id}`);
  const none = await create({ profile_name: 'cleo' });

  const [ours, theirs] = [follow(here.id), follow(elsewhere.id)];
  for (const states of [ours, theirs])
    expect((await states.next()).value).toMatchObject({ flow_step: 'AWAITING_INPUT' });
  const unused = follow(none.id).next();
  const left = theirs.next();
  room.logins.close();
  expect(await unused).toMatchObject({ done: true });
  expect(await left).toMatchObject({ done: true });

  const last = ours.next();
  await room.runner.close();
  expect((await last).value).toMatchObject({ flow_status: 'FAILED', error_code: 'browser_error' });
  expect(await ours.next()).toMatchObject({ done: true });
});

test('the link of a login works at every node, once', async () => {
  const { id } = await create();
  await asks(id);
  const other = openRoom('node_b');
  const code = new URL((await other.logins.get(asking, id)).hosted_url!).searchParams.get('code')!;
  const { invocation_id: flowId, jwt } = await other.logins.exchange(id, code);
  expect(jwt.split('.')).toHaveLength(3);
  await expect(room.logins.exchange(id, code)).rejects.toEqual(refused('handoff_code_gone'));
  expect(await room.logins.get({ ...asking, flowId }, id)).toMatchObject({ flow_step: 'AWAITING_INPUT' });
  await other.logins.submit({ ...asking, flowId }, id, { field_values: { identifier: 'ann', password: 'p' } });
  await succeeds(id);
});

test('a code lets a bounded number of people in', async () => {
  const { id } = await create();
  await asks(id);
  const { handoff_code: code } = { handoff_code: new URL((await get(id)).hosted_url!).searchParams.get('code')! };
  await store.db.rows(
    sql`update auth_runs set used_codes = (select array_agg(n::text) from generate_series(1, 200) n) where connection_id = ${id}`,
  );
  await expect(room.logins.exchange(id, code)).rejects.toEqual(refused('handoff_code_gone'));
});

test('a session that was not to save its profile may, unless another one saves to it or has since', async () => {
  const { id } = await create();
  const { profile_id: profile } = (await room.connections.find('proj', id))!;
  const sessions = sessionStore(store.db);
  const insert = (session: string, saves: boolean) =>
    sessions.insert(newRow({ id: session, project_id: 'proj', profile_id: profile, profile_saves: saves }), 'live');
  await insert('check', false);
  await insert('writer', true);
  expect(await sessions.saveIfUndisturbed('check')).toBeUndefined();
  await sessions.apply('writer', 'stop_requested', { reason: 'deleted' });
  expect(await sessions.saveIfUndisturbed('check')).toBeUndefined();
  await sessions.apply('writer', 'cleaned_up', { reason: 'deleted' });
  expect(await sessions.saveIfUndisturbed('check')).toBe(profile);
  await insert('later', false);
  await store.db.rows(sql`update profiles set updated_at = now() where id = ${profile}`);
  expect(await sessions.saveIfUndisturbed('later')).toBeUndefined();
  expect(await sessions.saveIfUndisturbed('unknown')).toBeUndefined();
});

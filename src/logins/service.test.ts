import { describe, expect, test } from 'vitest';
import { asking, eachLoginTest, success, type LoginRoom, type LoginTestStore } from '../../test/support/logins/room.ts';
import { loginState } from '../../test/support/logins/states.ts';
import { errors } from '../errors.ts';
import { sql } from '../store/sql.ts';
import type { FlowInput, FlowOutcome, Submitted, WasTyped } from './flow/types.ts';

let store: LoginTestStore;
let room: LoginRoom;
let openRoom: (nodeId?: string) => LoginRoom;
eachLoginTest((opened, open) => void ([store, room, openRoom] = [opened, open(), open]));

const create = (more: object = {}) =>
  room.logins.create(asking, { domain: 'shop.example', profile_name: 'ann', ...more });
const get = (id: string) => room.logins.get(asking, id);
const refused = (code: string) => expect.objectContaining({ code });

/** A flow that waits for one submit, and then ends with this outcome. */
function waiting(outcome: FlowOutcome = success, codes = false) {
  const seen: Submitted[] = [];
  let asked!: () => void;
  const isWaiting = new Promise<void>((resolve) => (asked = resolve));
  room.edge.flow = async ({ report, input, signal }: FlowInput) => {
    await report(loginState());
    asked();
    try {
      seen.push(await input({ signal, codes }));
    } catch {
      return { status: 'CANCELED', typed: {} };
    }
    await report(loginState({ step: 'SUBMITTING', fields: [], choices: [] }));
    return outcome;
  };
  return { seen, isWaiting };
}

/** Every state until the login is over. */
async function followed(id: string): Promise<string[]> {
  const states: string[] = [];
  for await (const state of room.logins.follow(asking, id, new AbortController().signal))
    states.push(`${state.flow_status} ${state.flow_step}`);
  return states;
}

describe('a connection', () => {
  test('makes its profile, keeps to its defaults, and has no flow before the first one', async () => {
    const made = await create({
      domain: 'https://Shop.Example/login',
      allowed_domains: ['*.id.example', 'id.example', 'http://Plain.example/login'],
    });
    expect(made).toMatchObject({
      domain: 'shop.example',
      profile_name: 'ann',
      status: 'NEEDS_AUTH',
      allowed_domains: ['id.example', 'http://plain.example'],
      health_check_interval: 3600,
      health_checks: true,
      auto_reauth: true,
      save_credentials: true,
      record_session: false,
      can_reauth: false,
      can_reauth_reason: 'no_prior_successful_login',
      flow_status: null,
      flow_step: null,
      fields: null,
      discovered_fields: null,
      hosted_url: null,
    });
    expect(made.id).toMatch(/^ma_/);
    expect(await get(made.id)).toEqual(made);
  });

  test('is refused a second time for the same profile and site, with the id of the first', async () => {
    const { id } = await create();
    await expect(create()).rejects.toMatchObject({ code: 'already_exists', extras: { body: { existing_id: id } } });
    await create({ domain: 'other.example' });
    await create({ profile_name: 'bob' });
    const named = async (filter: object) =>
      (await room.logins.list(asking, { limit: 20, offset: 0, ...filter })).map(({ profile_name }) => profile_name);
    expect(await named({})).toEqual(['ann', 'ann', 'bob']);
    expect(await named({ domain: 'shop.example' })).toEqual(['ann', 'bob']);
    expect(await named({ profile_name: 'BOB' })).toEqual(['bob']);
    expect(await named({ query: 'OTHER' })).toEqual(['ann']);
    expect(await named({ query: id })).toEqual(['ann']);
    expect(await named({ query: 'nowhere' })).toEqual([]);
  });

  test.each([
    ['a domain that is none', { domain: 'no host!' }],
    ['a login page that is none', { login_url: 'ftp://shop.example' }],
    ['a login page with a password in it', { login_url: 'https://a:b@shop.example' }],
    ['a site that is none', { allowed_domains: ['a b'] }],
    ['a proxy by two ways', { proxy: { id: 'a', name: 'b' } }],
    ['a proxy that is not there', { proxy: { name: 'gone' } }],
    [
      'telemetry that contradicts itself',
      { browser_telemetry: { enabled: false, browser: { page: { enabled: true } } } },
    ],
  ])('with %s is refused, and makes no profile', async (_, request) => {
    await expect(create(request)).rejects.toEqual(refused('invalid_input'));
    expect(await store.db.rows(sql`select id from profiles`)).toEqual([]);
  });

  test('takes a proxy by a name that only one has', async () => {
    await store.db.rows(
      sql`insert into proxies (id, project_id, type, protocol, config) values ('p1', 'proj', 'custom', 'http', '{}')`,
    );
    room.proxies.named = [{ id: 'p1' }];
    const { id, proxy_id } = await create({ proxy: { name: 'out' } });
    expect(proxy_id).toBe('p1');
    expect(await room.logins.usesProxy('p1')).toBe('1 auth connection');
    room.proxies.named = [{ id: 'p1' }, { id: 'p2' }];
    await expect(room.logins.update(asking, id, { proxy: { name: 'out' } })).rejects.toThrow(/several proxies/);
    expect(await room.logins.update(asking, id, { proxy: null })).not.toHaveProperty('proxy_id');
    expect(await room.logins.usesProxy('p1')).toBeUndefined();
  });

  test('is refused beyond 10,000 of a project', async () => {
    await store.db.rows(sql`insert into profiles (id, project_id, name) values ('many', ${asking.projectId}, 'many')`);
    await store.db.rows(sql`insert into auth_connections (id, project_id, profile_id, domain)
      select 'many-' || n, ${asking.projectId}, 'many', n || '.example' from generate_series(1, 10000) n`);
    await expect(create()).rejects.toEqual(refused('invalid_input'));
  });

  test('changes what a request names, and is checked by a new interval at once', async () => {
    const { id } = await create({ login_url: 'https://shop.example/in', browser_telemetry: { enabled: true } });
    const due = async () => (await room.connections.find('proj', id))!.next_check_at.getTime() - Date.now();
    expect(await due()).toBeGreaterThan(3000_000);
    const changed = await room.logins.update(asking, id, {
      login_url: '',
      health_check_interval: 300,
      auto_reauth: false,
    });
    expect(changed).toMatchObject({
      health_check_interval: 300,
      auto_reauth: false,
      browser_telemetry: { enabled: true },
    });
    expect(changed).not.toHaveProperty('login_url');
    expect(await due()).toBeLessThan(331_000);
    expect(await room.logins.update(asking, id, { browser_telemetry: null })).toMatchObject({
      browser_telemetry: null,
    });
    await room.logins.remove(asking, id);
    await expect(get(id)).rejects.toEqual(refused('connection_not_found'));
    await expect(room.logins.update(asking, id, {})).rejects.toEqual(refused('connection_not_found'));
  });

  test('loses a credential that is deleted, and goes with its profile', async () => {
    await store.db.rows(
      sql`insert into credentials (id, project_id, name, domain) values ('c', 'proj', 'Shop', 'shop.example')`,
    );
    const { id, credential } = await create({ credential: { name: 'c' } });
    expect(credential).toEqual({ name: 'Shop' });
    await store.db.rows(sql`delete from credentials`);
    expect(await get(id)).not.toHaveProperty('credential');
    expect(await room.logins.occupancy('proj')).toBe('1 auth connection');
    await store.db.rows(sql`update profiles set deleted_at = now()`);
    await expect(get(id)).rejects.toEqual(refused('connection_not_found'));
    await room.logins.removeOrphans();
    expect(await store.db.rows(sql`select id from auth_connections`)).toEqual([]);
  });
});

describe('a login', () => {
  test('asks a person, takes the submitted answers, saves the profile, and keeps what it learned', async () => {
    const { id } = await create();
    const flow = waiting({ ...success, typed: { username: 'ann', password: 'p1' }, ssoProvider: 'google' });
    const begun = await room.logins.login(asking, id, {});
    expect(begun).toMatchObject({ id, flow_type: 'LOGIN', live_view_url: expect.stringContaining('/live/') });
    expect(begun.hosted_url).toContain(`https://corral.example/auth/hosted/${id}?code=`);
    await flow.isWaiting;
    const now = await get(id);
    expect(now).toMatchObject({ flow_status: 'IN_PROGRESS', flow_step: 'AWAITING_INPUT', flow_type: 'LOGIN' });
    expect(now.fields).toHaveLength(2);
    expect(now.pending_sso_buttons).toHaveLength(1);
    await expect(room.logins.login(asking, id, {})).rejects.toEqual(refused('flow_in_progress'));

    const states = followed(id);
    await room.logins.submit(asking, id, { field_values: { identifier: 'ann', password: 'p1' } });
    expect((await states).at(-1)).toBe('SUCCESS COMPLETED');
    expect(flow.seen).toEqual([
      { fieldValues: { identifier: 'ann', password: 'p1' }, questions: ['q-identifier', 'q-password'] },
    ]);
    expect(room.browsers.ended).toEqual([{ sessionId: expect.any(String), save: true }]);
    expect(room.edge.saved).toEqual([
      expect.objectContaining({ values: { username: 'ann', password: 'p1' }, domain: 'shop.example' }),
    ]);
    const after = await get(id);
    expect(after).toMatchObject({
      status: 'AUTHENTICATED',
      flow_status: 'SUCCESS',
      fields: null,
      hosted_url: null,
      post_login_url: 'https://shop.example/home',
      credential: { name: 'saved' },
      can_reauth: true,
      can_reauth_reason: 'requirements_satisfiable',
    });
    expect(after.last_auth_at).toBe(after.last_auth_check_at);
    expect(await room.logins.timeline(asking, id, { limit: 20, offset: 0 })).toEqual([
      expect.objectContaining({ type: 'login', status: 'SUCCESS', step: 'COMPLETED', previous_status: 'NEEDS_AUTH' }),
    ]);
  });

  test('keeps the hosts that a person confirmed with the values typed there, until the credential changes', async () => {
    const { id } = await create({ domain: 'http://shop.example' });
    const logIn = async (more: Partial<FlowOutcome>) => {
      let given: FlowInput['connection'] | undefined;
      room.edge.flow = async ({ connection }) => ((given = connection), { ...success, ...more });
      await room.logins.login(asking, id, {});
      await followed(id);
      // What would be typed at each host, of the values that were typed somewhere.
      const values = ['ann', 'p1', 'p2', 'of the site'];
      const knows = (wasTyped: WasTyped) =>
        ['username', 'password'].flatMap((name) => values.filter((value) => wasTyped(name, value)));
      const hosts = Object.entries(given?.ssoHosts ?? {}).map(([host, wasTyped]) => [host, knows(wasTyped)]);
      return { ...given, ssoHosts: Object.fromEntries(hosts) as Record<string, string[]> };
    };
    const typed = { username: 'ann', password: 'p1' };
    expect(await logIn({ typed, ssoHosts: { 'id.example': ['username', 'password'] } })).toMatchObject({
      domain: 'shop.example',
      plainHttp: true,
      ssoHosts: {},
    });
    // Nothing was typed that is kept, so nothing is typed there by itself.
    expect(await logIn({ ssoHosts: { 'other.example': ['password'] } })).toMatchObject({
      ssoHosts: { 'id.example': ['ann', 'p1'] },
    });
    expect(await logIn({})).toMatchObject({
      ssoHosts: { 'id.example': ['ann', 'p1'], 'other.example': [] },
    });
    expect(await get(id)).toMatchObject({ confirmed_hosts: ['id.example', 'other.example'] });
    // The password that is kept now was typed at the site, so it is not the one of the confirmed host.
    await logIn({ typed: { password: 'of the site' }, ssoProvider: 'google' });
    // The button of a provider was clicked, and nothing was typed at the provider.
    expect(room.edge.saved.at(-1)).toMatchObject({ ssoProvider: undefined });
    expect(await logIn({})).toMatchObject({
      ssoHosts: { 'id.example': ['ann'], 'other.example': [] },
      ssoProvider: 'google',
    });
    // What the credential has for the site stays for the site, also if a person types it at a provider.
    room.edge.values = { password: 'p2' };
    const typedThere = { ssoHosts: { 'id.example': ['password'] } };
    await logIn({ ...typedThere, typed: { password: 'p2' } });
    expect(await logIn({})).toMatchObject({ ssoHosts: { 'id.example': ['ann', 'p2'], '': ['p2'] } });
    await logIn({ ...typedThere, typed: { password: 'p1' } });
    expect(await logIn({})).toMatchObject({ ssoHosts: { 'id.example': ['ann', 'p1'], '': [] } });
    expect(await get(id)).toMatchObject({ confirmed_hosts: ['id.example', 'other.example'] });
    await room.logins.update(asking, id, { credential: null });
    expect(await logIn({})).toMatchObject({ ssoHosts: {}, ssoProvider: undefined });
    for (const part of ['a', 'b'])
      await logIn({
        ssoHosts: Object.fromEntries(Array.from({ length: 90 }, (_, at) => [`${part}${at}.example`, []])),
      });
    expect((await get(id)).confirmed_hosts).toHaveLength(100);
  });

  test.each<[string, Partial<FlowOutcome>, string | undefined]>([
    [
      'fails',
      { status: 'FAILED', errorCode: 'credentials_invalid', websiteError: 'Wrong password.' },
      'credentials_invalid',
    ],
    ['expires', { status: 'EXPIRED', errorCode: 'awaiting_input_timeout' }, 'awaiting_input_timeout'],
  ])('that %s leaves the profile as it was', async (_, end, code) => {
    const { id } = await create();
    room.edge.flow = async () => ({ typed: { password: 'p1' }, ...end }) as FlowOutcome;
    await room.logins.login(asking, id, {});
    await followed(id);
    expect(room.browsers.ended).toEqual([{ sessionId: expect.any(String), save: false }]);
    expect(room.edge.saved).toEqual([]);
    expect(await get(id)).toMatchObject({ status: 'NEEDS_AUTH', flow_status: end.status, error_code: code });
  });

  test('has failed if its profile cannot be saved', async () => {
    const { id } = await create();
    room.browsers.notSaved = 'The disk is full.';
    await room.logins.login(asking, id, {});
    await followed(id);
    expect(await get(id)).toMatchObject({
      status: 'NEEDS_AUTH',
      flow_status: 'FAILED',
      error_code: 'internal_error',
      error_message: expect.stringContaining('The disk is full.'),
    });
  });

  test('that breaks in the service has failed, and says no more', async () => {
    const { id } = await create();
    room.edge.flow = () => Promise.reject(new Error('secret details'));
    await room.logins.login(asking, id, {});
    await followed(id);
    const { error_code, error_message } = await get(id);
    expect(error_code).toBe('internal_error');
    expect(error_message).not.toContain('secret details');
  });

  test('without a place for its browser is refused, and the next one is not', async () => {
    const { id } = await create();
    room.browsers.refusal = errors.capacity_exhausted({ running: 1, most: 1 });
    await expect(room.logins.login(asking, id, {})).rejects.toEqual(refused('capacity_exhausted'));
    room.browsers.refusal = undefined;
    await room.logins.login(asking, id, {});
    expect((await followed(id)).at(-1)).toBe('SUCCESS COMPLETED');
  });

  test('of one profile runs alone, also for another site; one past its time makes way', async () => {
    const { id } = await create();
    const other = await create({ domain: 'other.example' });
    const flow = waiting();
    await room.logins.login(asking, id, {});
    await flow.isWaiting;
    await expect(room.logins.login(asking, other.id, {})).rejects.toThrow(new RegExp(id));
    await store.db.rows(sql`update auth_runs set expires_at = now() - interval '1 second'`);
    await expect(room.logins.submit(asking, id, { field_values: { password: 'x' } })).rejects.toEqual(
      refused('no_active_flow'),
    );
    room.edge.flow = async () => success;
    await room.logins.login(asking, other.id, {});
    await followed(other.id);
    expect(await get(id)).toMatchObject({ flow_status: 'EXPIRED' });
    expect(await get(other.id)).toMatchObject({ flow_status: 'SUCCESS' });
  });

  test('is canceled with its connection, and when its browser or the service goes', async () => {
    const deleted = await create();
    let flow = waiting();
    await room.logins.login(asking, deleted.id, {});
    await flow.isWaiting;
    await room.logins.remove(asking, deleted.id);
    await expect.poll(() => room.browsers.ended).toEqual([{ sessionId: expect.any(String), save: false }]);

    const crashed = await create();
    flow = waiting();
    await room.logins.login(asking, crashed.id, {});
    await flow.isWaiting;
    room.runner.sessionEnded((await get(crashed.id)).browser_session_id!);
    await followed(crashed.id);
    expect(await get(crashed.id)).toMatchObject({ flow_status: 'FAILED', error_code: 'browser_error' });
    // What the page asked for may be large, and the history of logins has no use for it.
    expect((await room.runs.latest([crashed.id])).get(crashed.id)!.state).toMatchObject({ fields: [], choices: [] });

    flow = waiting();
    await room.logins.login(asking, crashed.id, {});
    await flow.isWaiting;
    await room.logins.pushCode(asking, crashed.id, '123456'); // is never taken
    await room.runner.close();
    expect(await get(crashed.id)).toMatchObject({
      flow_status: 'FAILED',
      error_message: expect.stringContaining('stopped'),
    });
    expect(room.browsers.ended.map(({ save }) => save)).toEqual([false, false, false]);
    await expect(room.logins.login(asking, crashed.id, {})).rejects.toEqual(refused('shutting_down'));
  });

  test('is canceled by a request once, on any node, and its profile is not saved', async () => {
    const { id } = await create();
    await expect(room.logins.cancel(asking, id)).rejects.toEqual(refused('no_active_flow'));
    const flow = waiting();
    await room.logins.login(asking, id, {});
    await flow.isWaiting;
    const { input_expires_at: ends, flow_expires_at: over } = await get(id);
    expect(Date.parse(ends!)).toBeLessThan(Date.parse(over!) - 5 * 60_000);
    await openRoom('node_b').logins.cancel(asking, id);
    expect(await get(id)).toMatchObject({ flow_status: 'CANCELED', input_expires_at: null, status: 'NEEDS_AUTH' });
    await expect.poll(() => room.browsers.ended).toEqual([{ sessionId: expect.any(String), save: false }]);
    await expect(room.logins.cancel(asking, id)).rejects.toEqual(refused('no_active_flow'));
  });

  test('takes no submit that it does not wait for', async () => {
    const { id } = await create();
    const submit = (request: object) => room.logins.submit(asking, id, request);
    await expect(submit({ field_values: { password: 'x' } })).rejects.toEqual(refused('no_active_flow'));
    // Made before the login: its state can be read before the flow hears that it was reported.
    let goOn!: () => void;
    const goesOn = new Promise<void>((resolve) => (goOn = resolve));
    room.edge.flow = async ({ report, signal }) => {
      signal.addEventListener('abort', () => goOn());
      await report(loginState({ step: 'SUBMITTING', fields: [], choices: [] }));
      await goesOn;
      await report(loginState());
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
      return { status: 'CANCELED', typed: {} };
    };
    await room.logins.login(asking, id, {});
    await expect.poll(async () => (await get(id)).flow_step).toBe('SUBMITTING');
    expect((await get(id)).interaction_id).toBeNull();
    await expect(submit({ field_values: { password: 'x' } })).rejects.toEqual(refused('flow_not_waiting'));
    goOn();
    await expect.poll(async () => (await get(id)).flow_step).toBe('AWAITING_INPUT');
    const { interaction_id } = await get(id);
    const stale = { interaction_id: `${interaction_id}0`, field_values: { password: 'x' } };
    await expect(submit(stale)).rejects.toEqual(refused('stale_interaction'));
    await submit({ interaction_id, field_values: { password: 'x' } });
    await expect(submit({ field_values: { password: 'y' } })).rejects.toEqual(refused('flow_not_waiting'));
    for (let count = 0; count < 10; count++) await room.logins.pushCode(asking, id, '1');
    await expect(room.logins.pushCode(asking, id, '1')).rejects.toEqual(refused('flow_not_waiting'));
  });

  test('gets codes that were pushed before or while it asks, and is known to be sent them from then on', async () => {
    const { id } = await create();
    const flow = waiting(
      {
        ...success,
        requirements: { ...success.requirements!, codes: ['sms'] },
        typed: { username: 'u', password: 'p' },
      },
      true,
    );
    await room.logins.login(asking, id, {});
    await room.logins.pushCode(asking, id, '246810');
    await followed(id);
    expect(flow.seen).toEqual([{ code: '246810' }]);
    expect(await get(id)).toMatchObject({ can_reauth: true, can_reauth_reason: 'requirements_satisfiable' });
  });

  test('keeps its last looks for explain, the last twenty, and large ones without the page', async () => {
    const { id } = await create();
    expect(await room.logins.explain(asking, id)).toEqual({ flow: null, records: [] });
    room.edge.flow = async ({ record }) => {
      for (let count = 1; count <= 25; count++)
        record({
          at: new Date().toISOString(),
          state: 'reading',
          url: 'https://shop.example/',
          title: String(count),
          decision: 'Looked.',
          evidence: [],
          fields: [],
          choices: [],
          next: [],
          page: {
            frames: [
              {
                url: '',
                main: true,
                elements: [],
                texts: [{ text: 'x'.repeat(count === 25 ? 300_000 : 1), live: false }],
              },
            ],
          },
        });
      return success;
    };
    await room.logins.login(asking, id, {});
    await followed(id);
    await expect.poll(async () => (await room.logins.explain(asking, id)).records.at(-1)?.title).toBe('25');
    const { records, flow } = await room.logins.explain(asking, id);
    expect(records.map(({ title }) => title)).toEqual(Array.from({ length: 20 }, (_, index) => String(index + 6)));
    expect(records.at(-1)).not.toHaveProperty('page');
    expect(flow).toMatchObject({ type: 'login', status: 'SUCCESS' });
    await expect(room.logins.recipe(asking, id)).rejects.toEqual(refused('recipe_not_found'));
  });
});

describe('an invitee', () => {
  const codeOf = (hostedUrl: string) => new URL(hostedUrl).searchParams.get('code')!;

  test('gets in by a code, once, and takes part in that login only', async () => {
    const { id } = await create();
    const flow = waiting();
    const { hosted_url, handoff_code } = await room.logins.login(asking, id, {});
    await flow.isWaiting;
    const { invocation_id, jwt } = await room.logins.exchange(id, codeOf(hosted_url));
    expect(jwt.split('.')).toHaveLength(3);
    await expect(room.logins.exchange(id, codeOf(hosted_url))).rejects.toEqual(refused('handoff_code_gone'));
    await expect(room.logins.exchange(id, 'a.b.c')).rejects.toEqual(refused('handoff_code_gone'));
    await expect(room.logins.exchange('ma_other', handoff_code!)).rejects.toEqual(refused('handoff_code_gone'));
    await room.logins.exchange(id, handoff_code!);
    const invitee = { ...asking, flowId: invocation_id };
    expect(await room.logins.get(invitee, id)).toMatchObject({ flow_step: 'AWAITING_INPUT' });
    await room.logins.submit(invitee, id, { field_values: { password: 'x' } });
    await followed(id);
    expect(await room.logins.get(invitee, id)).toMatchObject({ flow_status: 'SUCCESS' });
    await expect(room.logins.exchange(id, codeOf(hosted_url))).rejects.toEqual(refused('handoff_code_gone'));
    room.edge.flow = async () => success;
    await room.logins.login(asking, id, {});
    await expect(room.logins.get(invitee, id)).rejects.toEqual(refused('unauthorized'));
    await followed(id);
  });
});

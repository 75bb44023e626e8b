import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { good, run, shop } from '../../test/support/logins/scripted-flow.ts';
import { openTestStore } from '../../test/support/store.ts';
import { credentialLookup } from '../credentials/lookup.ts';
import { credentialService } from '../credentials/service.ts';
import { eventBus } from '../events.ts';
import { newId } from '../lib/ids.ts';
import { silent } from '../lib/log.ts';
import { orgStore } from '../org/store.ts';
import { profileStore } from '../profiles/store.ts';
import { openKeys, secretStore } from '../store/secrets.ts';
import { sql } from '../store/sql.ts';
import { theSite } from './flow/hosts.ts';
import type { FlowOutcome } from './flow/types.ts';
import { loginKeeping } from './login-results.ts';
import { connectionStore } from './store.ts';

const host = 'acme.okta.com';
const projectId = 'proj';

let store: Awaited<ReturnType<typeof openTestStore>>;
beforeAll(async () => {
  store = await openTestStore();
  await orgStore(store.db).ensureDefaultProject(projectId);
});
afterAll(() => store?.close());

let room: Awaited<ReturnType<typeof open>>;
beforeEach(async () => {
  for (const table of [
    sql`delete from auth_connections`,
    sql`delete from profiles`,
    sql`delete from credentials`,
    sql`delete from secrets`,
  ])
    await store.db.rows(table);
  room = await open([old]);
});

const [old, current] = [randomBytes(32), randomBytes(32)];

/** What keeps values for logins, with these keys of the service, newest first. */
async function open(keys: Buffer[]) {
  const secrets = secretStore(store.db, await openKeys('', keys.map((key) => key.toString('hex')).join()));
  const elsewhere = { refuseHost: async () => undefined, publicUrl: () => 'https://corral.example' };
  const credentials = credentialService({ db: store.db, secrets, events: eventBus(), ...elsewhere });
  const lookup = credentialLookup({ credentials, providers: undefined as never, log: silent });
  return { secrets, credentials, keeping: loginKeeping({ db: store.db, secrets, lookup, log: silent }) };
}

const connections = () => connectionStore(store.db);
async function connect(credentialId: string | null): Promise<string> {
  const id = newId('ma_');
  const profile = (await profileStore(store.db).insert(newId(), projectId, id))!;
  await store.db
    .rows(sql`insert into auth_connections (id, project_id, profile_id, domain, credential_kind, credential_id, next_check_at)
    values (${id}, ${projectId}, ${profile.id}, 'shop.example', ${credentialId && 'stored'}, ${credentialId}, now())`);
  return id;
}
const find = async (id: string) => (await connections().find(projectId, id))!;

const credential = async () =>
  (await room.credentials.create(projectId, { name: 'ann', domain: 'shop.example', values: {} })).id;

/** A login that succeeds after a person typed these values, at these hosts. */
async function typeAt(id: string, typed: Record<string, string>, ssoHosts: FlowOutcome['ssoHosts']) {
  const row = await find(id);
  const found = await room.keeping.keep({ began: row, now: row }, { status: 'SUCCESS', typed, ssoHosts }, true);
  await connections().learn(id, found);
}
/** The passwords that a login without a person types at the site. */
async function typedAtSite(id: string): Promise<string[]> {
  const { site } = await run({ script: shop(), input: await room.keeping.given(await find(id), 'reauth') });
  return site.submits.flatMap(({ password }) => password ?? []);
}

const atProvider = { [host]: ['username', 'password'] };

test.each<[string, (connection: string, credential: string) => Promise<string>]>([
  ['of the same connection', async (connection) => connection],
  ['of another connection with the credential', (_, credential) => connect(credential)],
  [
    'of a connection that was given the same credential again',
    async (connection) => {
      const row = await find(connection);
      await connections().change(connection, { ...row, sso_hosts: {} }, null);
      return connection;
    },
  ],
  [
    'after the key of the service was replaced',
    async (connection) => {
      await (await open([current, old])).secrets.reseal();
      room = await open([current]);
      return connection;
    },
  ],
])(
  'a password that a person typed at an identity provider is not typed at the site by a login %s',
  async (_, later) => {
    const id = await credential();
    const connection = await connect(id);
    await typeAt(connection, good, atProvider);
    expect(await typedAtSite(await later(connection, id))).toEqual([]);
  },
);

test('a password of an identity provider stays one when a person types it there in a login of another connection', async () => {
  const id = await credential();
  for (const connection of [await connect(id), await connect(id)]) await typeAt(connection, good, atProvider);
  expect(await typedAtSite(await connect(id))).toEqual([]);
});

test.each<[string, (connection: string, credential: string) => Promise<unknown>]>([
  ['typed at the site too', (connection) => typeAt(connection, good, { ...atProvider, [theSite]: ['password'] })],
  [
    'typed at the site later',
    async (connection) => {
      await typeAt(connection, good, atProvider);
      await typeAt(connection, good, undefined);
    },
  ],
  [
    'set by a request later',
    async (connection, id) => {
      await typeAt(connection, { ...good, password: 'of the provider' }, atProvider);
      await room.credentials.update(projectId, id, { values: good });
    },
  ],
])('a password that was %s is typed at the site', async (_, keep) => {
  const id = await credential();
  const connection = await connect(id);
  await keep(connection, id);
  for (const one of [connection, await connect(id)]) expect(await typedAtSite(one)).toEqual([good.password]);
});

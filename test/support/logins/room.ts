import { randomBytes } from 'node:crypto';
import { Registry } from 'prom-client';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import type { CredentialLookup } from '../../../src/credentials/lookup.ts';
import type { ServiceError } from '../../../src/errors.ts';
import { keyring } from '../../../src/lib/seal.ts';
import { silent } from '../../../src/lib/log.ts';
import { newId } from '../../../src/lib/ids.ts';
import { tokens } from '../../../src/lib/tokens.ts';
import type { LoginBrowser, LoginBrowsers } from '../../../src/logins/browsers.ts';
import type { FlowInput, FlowOutcome, Health } from '../../../src/logins/flow/types.ts';
import { flowTokenPurpose, flowTokens } from '../../../src/logins/hosted/token.ts';
import { checkClaims } from '../../../src/logins/claim-store.ts';
import { loginInputs } from '../../../src/logins/inputs.ts';
import { loginMetrics } from '../../../src/logins/metrics.ts';
import { loginNotices } from '../../../src/logins/notices.ts';
import { loginChannel, runStore } from '../../../src/logins/run-store.ts';
import { nodeLogins } from '../../../src/logins/node-logins.ts';
import { jittered } from '../../../src/logins/checks.ts';
import { loginSchedule } from '../../../src/logins/schedule.ts';
import { loginService } from '../../../src/logins/service.ts';
import { connectionStore } from '../../../src/logins/store.ts';
import { orgStore } from '../../../src/org/store.ts';
import { profileStore } from '../../../src/profiles/store.ts';
import { unlessTaken } from '../../../src/store/names.ts';
import { openKeys, secretStore } from '../../../src/store/secrets.ts';
import { sql } from '../../../src/store/sql.ts';
import { openTestStore } from '../store.ts';

export const success: FlowOutcome = {
  status: 'SUCCESS',
  typed: {},
  postLoginUrl: 'https://shop.example/home',
  requirements: {
    keys: ['username', 'password'],
    totp: false,
    codes: [],
    external: false,
    passkey: false,
    basic: false,
  },
};

export const asking = { projectId: 'proj', keyId: 'key' };

export type LoginTestStore = Awaited<ReturnType<typeof openLoginStore>>;

/** A store in which nodes hear of each other's logins. */
export async function openLoginStore() {
  const store = await openTestStore(['corral_org', loginChannel]);
  await orgStore(store.db).ensureDefaultProject(asking.projectId);
  /** The rooms that hear notifications. */
  const hearing = new Set<(payload: string) => void>();
  store.anchor.on(loginChannel, (payload) => {
    for (const hear of hearing) hear(payload);
  });
  /** Nodes sign with the same key. */
  const key = randomBytes(32);
  return { ...store, hearing, key, secrets: secretStore(store.db, await openKeys(store.dataDir, '')) };
}

/** The room of one node on a real database. Browsers, flows and credentials are the test's. */
export function loginRoom(store: LoginTestStore, nodeId = 'node_a', slotMs?: number) {
  const { db, hearing, secrets, key } = store;
  const browsers = {
    /** The browsers that were ended, and whether their profile was saved. */
    ended: [] as { sessionId: string; save: boolean }[],
    refusal: undefined as Error | undefined,
    /** The cookies of every browser, by name. */
    cookies: { sid: '1' } as Record<string, string>,
    /** The storage of every origin, as a hash. */
    storage: '1',
    /** Addresses that were opened in their first pages. */
    opened: [] as string[],
    notSaved: undefined as string | undefined,
    /** What must not be in telemetry. */
    hidden: [] as string[],
  };
  const started: LoginBrowsers['start'] = async () => {
    if (browsers.refusal) throw browsers.refusal;
    const sessionId = newId();
    const browser: LoginBrowser = {
      sessionId,
      replayId: null,
      captured: false,
      forms: {
        pages: async () => [{ pageId: 'page', url: 'about:blank', title: '' }],
        state: async () => ({
          cookies: Object.entries(browsers.cookies).map(([name, hash]) => ({
            name,
            hash,
            domain: 'shop.example',
            path: '/',
            httpOnly: true,
            session: true,
          })),
          storage: [],
        }),
        stored: async (origin: string) => ({ cookies: [], storage: [{ origin, keys: 1, hash: browsers.storage }] }),
        async navigate(_: string, url: string) {
          browsers.opened.push(url);
          return {};
        },
        settled: async () => {},
      } satisfies Partial<LoginBrowser['forms']> as never,
      watched: () => false,
      hide: (values) => void browsers.hidden.push(...values),
      async end({ save }) {
        browsers.ended.push({ sessionId, save });
        return save ? browsers.notSaved : undefined;
      },
    };
    return browser;
  };
  const edge = {
    flow: (async () => success) as (input: FlowInput) => Promise<FlowOutcome>,
    health: async (): Promise<Health> => 'authenticated',
    saved: [] as object[],
    /** What every credential holds. */
    values: {} as Record<string, string>,
    /** No login has sources of codes. */
    codeSources: { forLogin: () => ({ begin() {}, watch: async () => {}, accepted: async () => {}, close() {} }) },
    /** Why no credential can be used. */
    refusal: undefined as ServiceError | undefined,
  };
  const lookup: Pick<CredentialLookup, 'link' | 'resolve' | 'refusal' | 'totpCode' | 'save'> = {
    link: async (_project, { name }) => ({ credentialId: name! }),
    resolve: async () => ({ values: edge.values }),
    refusal: async () => edge.refusal,
    totpCode: async () => undefined,
    async save(login) {
      edge.saved.push(login);
      await db.rows(sql`insert into credentials (id, project_id, name, domain, value_keys)
        values ('saved', ${login.projectId}, 'saved', ${login.domain}, ${Object.keys(login.values)}) on conflict do nothing`);
      return { id: 'saved', name: 'saved' };
    },
  };
  const notices = loginNotices();
  hearing.add(notices.hear);
  const inputs = loginInputs({ db, secrets, notices });
  const metrics = loginMetrics(new Registry());
  const shared = { db, browsers: { start: started }, metrics, nodeId, log: silent };
  const runner = nodeLogins({
    ...shared,
    secrets,
    inputs,
    lookup,
    codeSources: edge.codeSources,
    runFlow: (input) => edge.flow(input),
    nextCheckAt: jittered,
  });
  notices.onAny((notice) => notice?.what === 'cancel' && runner.cancel(notice.runId));
  const schedule = loginSchedule({
    ...shared,
    runner,
    checkPage: async () => ({ health: await edge.health(), why: 'So it looks.' }),
    ...(slotMs === undefined ? {} : { slotMs }),
  });
  const proxies = {
    named: [] as { id: string }[],
    list: async () => proxies.named as never,
    refuseUnknown: async () => {},
  };
  const logins = loginService({
    db,
    profiles: {
      create: (projectId, name = '') =>
        unlessTaken({ index: 'profiles_name', thing: 'profile', name }, () =>
          profileStore(db).insert(newId(), projectId, name),
        ) as never,
      choose: async (projectId, { name }) => (await profileStore(db).findBy(projectId, null, name ?? null))!,
    },
    proxies,
    lookup,
    runner,
    inputs,
    notices,
    tokens: flowTokens(tokens(() => keyring([key]), Date.now, flowTokenPurpose)),
    nodeId,
    publicUrl: () => 'https://corral.example',
    liveView: async (_, sessionId) => `https://corral.example/live/${sessionId}`,
    log: silent,
  });
  return {
    logins,
    runner,
    schedule,
    inputs,
    browsers,
    edge,
    proxies,
    runs: runStore(db),
    connections: connectionStore(db),
    claims: checkClaims(db),
    async close() {
      await Promise.all([schedule.close(), runner.close()]);
      hearing.delete(notices.hear);
    },
  };
}

export type LoginRoom = ReturnType<typeof loginRoom>;

/**
 * A store for the tests of a file. `begin` is called before each test, with what opens the room of a node. The rooms are closed
 * after the test, and nothing may be left sealed then.
 */
export function eachLoginTest(
  begin: (store: LoginTestStore, open: (nodeId?: string, slotMs?: number) => LoginRoom) => void,
): void {
  let store: LoginTestStore;
  const rooms: LoginRoom[] = [];
  beforeAll(async () => void (store = await openLoginStore()));
  afterAll(() => store?.close());
  beforeEach(() =>
    begin(store, (...options) => {
      const room = loginRoom(store, ...options);
      rooms.push(room);
      return room;
    }),
  );
  afterEach(async () => {
    await Promise.all(rooms.splice(0).map((room) => room.close()));
    for (const table of [
      sql`delete from auth_connections`,
      sql`delete from sessions`,
      sql`delete from profiles`,
      sql`delete from credentials`,
    ])
      await store.db.rows(table);
    const sealed = await store.db.rows(sql`select kind from secrets`);
    if (sealed.length > 0) throw new Error(`Sealed values were left behind: ${JSON.stringify(sealed)}.`);
  });
}

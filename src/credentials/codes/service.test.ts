import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { openTestStore } from '../../../test/support/store.ts';
import { EgressError } from '../../chromium/egress/refusals.ts';
import { eventBus } from '../../events.ts';
import { silent } from '../../lib/log.ts';
import { orgStore } from '../../org/store.ts';
import { openKeys, secretStore, type Secrets } from '../../store/secrets.ts';
import { sql } from '../../store/sql.ts';
import { credentialService, type CredentialService } from '../service.ts';
import type { SourceFault } from './faults.ts';
import { MailboxFailure, type MailHead, type Mailboxes, type Watching } from './mailbox.ts';
import type { CodeSourceInput } from './schema.ts';
import { codeSourceService, type CodeSourceService } from './service.ts';
import type { CodeWatch, FoundCode } from './watch.ts';

let store: Awaited<ReturnType<typeof openTestStore>>;
let secrets: Secrets;
let credentials: CredentialService;
let codes: CodeSourceService;
let refusal: EgressError | undefined;

/** A mailbox with these mails, for every source. */
let mails: (MailHead & { text: string; at: number })[] = [];
let failure: MailboxFailure | undefined;
const opened: string[] = [];
const removed: number[] = [];
const mailboxes: Mailboxes = {
  async note(settings) {
    opened.push(settings.password);
    return { uidNext: Math.max(0, ...mails.map(({ uid }) => uid)) + 1, uidValidity: '7' };
  },
  async watch(settings, { after, since, choose, read, looked, signal }: Watching) {
    opened.push(settings.password);
    if (failure) throw failure;
    const seen = new Set<number>();
    while (!signal.aborted) {
      const fresh = mails.filter(({ uid, at }) => !seen.has(uid) && at >= since && uid >= (after?.uidNext ?? 0));
      for (const { uid } of fresh) seen.add(uid);
      for (const uid of choose(fresh)) {
        const { text, ...head } = fresh.find((one) => one.uid === uid)!;
        if (await read({ uid, text, html: '' }, head)) break;
      }
      looked();
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    throw signal.reason as Error;
  },
  async remove(_settings, { uid }) {
    removed.push(uid);
  },
};

beforeAll(async () => {
  store = await openTestStore();
  const { db } = store;
  secrets = secretStore(db, await openKeys(store.dataDir, ''));
  await orgStore(db).ensureDefaultProject('proj');
  const publicUrl = () => 'https://corral.example';
  credentials = credentialService({ db, secrets, events: eventBus(), refuseHost: async () => refusal, publicUrl });
  codes = codeSourceService({ db, secrets, mailboxes, log: silent });
});
afterAll(() => store.close());
beforeEach(() => {
  [mails, failure, refusal] = [[], undefined, undefined];
  opened.length = removed.length = 0;
});
afterEach(async () => {
  for (const { name } of await credentials.list('proj', { limit: 100, offset: 0 }))
    await credentials.remove('proj', name);
  const left = await store.db.rows(sql`select kind from secrets`);
  await store.db.rows(sql`delete from used_code_mails`);
  if (left.length > 0) throw new Error(`Sealed values were left behind: ${JSON.stringify(left)}.`);
});

const imap: CodeSourceInput = { type: 'imap', host: 'imap.example', username: 'ann', password: 'm4il' };
const create = (sources: CodeSourceInput[], name = 'shop') =>
  credentials.create('proj', { name, domain: 'shop.example', values: {}, one_time_code_sources: sources });
const sealed = async () =>
  (await store.db.rows<{ kind: string }>(sql`select kind from secrets order by kind`)).map(({ kind }) => kind);
const loginOf = (credentialId: string) => codes.forLogin({ projectId: 'proj', credentialId });
const posting = async (url: string | undefined, body: string) =>
  codes.receive((await codes.sourceOf(url!.split('/').at(-1)!))!, 'text/plain', body);

let uid = 0;
const mail = (text: string, changes: Partial<MailHead> & { at?: number } = {}) =>
  void mails.push({
    uid: ++uid,
    uidValidity: '7',
    from: ['Shop <no-reply@shop.example>'],
    to: ['Ann <ann@mail.example>'],
    subject: 'Your code',
    at: Date.now(),
    text,
    ...changes,
  });

/** What a login finds until `enough` codes were found. */
async function found(login: ReturnType<typeof loginOf>, enough: number, changes: Partial<CodeWatch> = {}) {
  const over = new AbortController();
  const list: FoundCode[] = [];
  const faults: (SourceFault | undefined)[] = [];
  await login.watch({
    since: Date.now() - 100,
    addresses: [],
    signal: over.signal,
    async found(code) {
      list.push(code);
      if (list.length >= enough) over.abort();
    },
    faulty: (_, fault) => void faults.push(fault),
    ...changes,
  });
  return { codes: list.map(({ code }) => code), list, faults };
}

describe('the sources of a credential', () => {
  test('are answered without what is secret, and an address once', async () => {
    const made = await create([{ ...imap, subject: 'code', delete_after_use: true }, { type: 'webhook' }]);
    const mailbox = {
      id: expect.stringMatching(/^otc_/),
      type: 'imap',
      host: 'imap.example',
      port: 993,
      security: 'tls',
      username: 'ann',
      mailbox: 'INBOX',
      subject: 'code',
      delete_after_use: true,
    };
    const address = { id: expect.stringMatching(/^otc_/), type: 'webhook' };
    const url = expect.stringMatching(/^https:\/\/corral\.example\/one-time-codes\/[\w-]{32}$/);
    expect(made.one_time_code_sources).toEqual([mailbox, { ...address, webhook_url: url }]);
    expect((await credentials.get('proj', 'shop')).one_time_code_sources).toEqual([mailbox, address]);
    expect(await sealed()).toEqual(['credential values', 'one-time code mailbox']);
  });

  test('keep their password and their address in an update that names them', async () => {
    const made = await create([imap, { type: 'webhook' }]);
    const [mailbox, address] = made.one_time_code_sources!;
    const { password: _, ...open } = imap;
    const changed = await credentials.update('proj', 'shop', {
      one_time_code_sources: [
        { type: 'webhook', id: address!.id },
        { ...open, id: mailbox!.id, from: '*@shop.example' },
      ],
    });
    expect(changed.one_time_code_sources).toEqual([
      { id: address!.id, type: 'webhook' },
      { ...mailbox, from: '*@shop.example' },
    ]);
    await posting(address!.webhook_url, '123456');
    mail('Code: 654321');
    expect((await found(loginOf(made.id), 2)).codes.toSorted()).toEqual(['123456', '654321']);
    expect(opened).toEqual(['m4il']);
    const same = await credentials.update('proj', 'shop', { name: 'other' });
    expect(same.one_time_code_sources).toHaveLength(2);
    expect((await credentials.update('proj', 'other', { one_time_code_sources: null })).one_time_code_sources).toEqual(
      [],
    );
    expect(await sealed()).toEqual(['credential values']);
  });

  test.each<[string, CodeSourceInput, string]>([
    ['a mailbox without a host', { type: 'imap', username: 'a', password: 'b' }, 'host and username'],
    ['a mailbox without a password', { type: 'imap', host: 'a.example', username: 'a' }, 'no password'],
    ['an address with a host', { type: 'webhook', host: 'a.example' }, 'no other fields'],
    ['certificates that are none', { ...imap, ca_bundle: 'x' }, 'ca_bundle'],
    ['an id of another source', { ...imap, id: 'otc_x' }, 'id'],
    ['a password of two lines', { ...imap, password: 'a\r\nb' }, 'line break'],
  ])('%s is refused', async (_, one, says) => {
    await expect(create([one])).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.stringContaining(says),
    });
  });

  test('do not send a stored password to another server', async () => {
    const made = await create([imap]);
    const [{ id } = { id: '' }] = made.one_time_code_sources!;
    for (const change of [
      { host: 'evil.example' },
      { port: 1993 },
      { username: 'bob' },
      { security: 'starttls' as const },
    ]) {
      const { password: _, ...open } = imap;
      await expect(
        credentials.update('proj', 'shop', { one_time_code_sources: [{ ...open, ...change, id }] }),
      ).rejects.toMatchObject({ code: 'invalid_input' });
    }
  });

  test('at a private address are refused', async () => {
    refusal = new EgressError('destination_refused', 'no', { remedy: 'Ask the operator.' });
    await expect(create([imap])).rejects.toMatchObject({
      code: 'code_source_host_refused',
      message: expect.stringContaining('imap.example:993'),
    });
  });
});

describe('posted codes', () => {
  test('are kept sealed for a login, the newest ten of them', async () => {
    const made = await create([{ type: 'webhook' }]);
    const url = made.one_time_code_sources![0]!.webhook_url;
    for (let at = 10; at < 25; at++) await posting(url, `Your code is 4455${at}`);
    await posting(url, 'Nothing to see');
    expect(await sealed()).toEqual(['credential values', ...Array.from({ length: 10 }, () => 'one-time code')]);
    const two = await found(loginOf(made.id), 2);
    expect(two.codes).toEqual(['445524', '445523']);
    expect(await codes.sourceOf('unknown')).toBeUndefined();
  });

  test('of another time are for another login', async () => {
    const made = await create([{ type: 'webhook' }]);
    const url = made.one_time_code_sources![0]!.webhook_url;
    await posting(url, 'Code: 111111');
    await store.db.rows(sql`update posted_codes set received_at = now() - interval '60 seconds'`);
    setTimeout(() => void posting(url, 'Code: 222222'), 50);
    expect((await found(loginOf(made.id), 1)).codes).toEqual(['222222']);
    await store.db.rows(sql`update posted_codes set received_at = now() - interval '121 seconds'`);
    await codes.tidy();
    expect(await sealed()).toEqual(['credential values']);
  });

  test('are given to one of two logins', async () => {
    const made = await create([{ type: 'webhook' }]);
    const over = new AbortController();
    const both: string[] = [];
    const watch = (): Promise<unknown> =>
      found(loginOf(made.id), 9, { signal: over.signal, found: async ({ code }) => void both.push(code) });
    const running = [watch(), watch()];
    await posting(made.one_time_code_sources![0]!.webhook_url, 'Code: 123456');
    await vi.waitFor(() => expect(both).toEqual(['123456']), { timeout: 5000 });
    await new Promise((resolve) => setTimeout(resolve, 1200));
    over.abort();
    await Promise.all(running);
    expect(both).toEqual(['123456']);
  });
});

describe('the mails of a mailbox', () => {
  test('are chosen by their patterns, and the newest is first', async () => {
    const made = await create([{ ...imap, from: '*@SHOP.example', subject: 'your*code', to: 'ann@' }]);
    const login = loginOf(made.id);
    mail('Code: 111111');
    mail('Code: 222222');
    mail('Code: 333333', { subject: 'Newsletter' });
    mail('Code: 444444', { from: ['x <x@other.example>'] });
    mail('Code: 555555', { to: ['bob@mail.example'] });
    mail('Nothing here');
    expect((await found(login, 1)).codes).toEqual(['222222']);
  });

  test('to the account come first', async () => {
    const made = await create([imap]);
    mail('Code: 111111', { to: ['Ann <ann@mail.example>'] });
    mail('Code: 222222', { to: ['Bob <bob@mail.example>'] });
    expect((await found(loginOf(made.id), 1, { addresses: ['ann@mail.example'] })).codes).toEqual(['111111']);
  });

  test('are used once, in any login and by any credential', async () => {
    const [one, two] = [await create([imap]), await create([{ ...imap, from: 'shop' }], 'second')];
    mail('Code: 111111');
    mail('Code: 222222');
    const first = await found(loginOf(one.id), 1);
    const second = await found(loginOf(two.id), 1);
    expect([...first.codes, ...second.codes]).toEqual(['222222', '111111']);
  });

  test('that were there when the login began are not for it', async () => {
    const made = await create([imap]);
    mail('Code: 111111');
    const login = loginOf(made.id);
    login.begin();
    await vi.waitFor(() => expect(opened).toHaveLength(1));
    await new Promise((resolve) => setTimeout(resolve, 20));
    setTimeout(() => mail('Code: 222222'), 30);
    expect((await found(login, 1, { since: Date.now() })).codes).toEqual(['222222']);
  });

  test('are deleted once the site has accepted the code, where the source says so', async () => {
    for (const delete_after_use of [false, true]) {
      const made = await create([{ ...imap, delete_after_use }], `shop ${delete_after_use}`);
      mail('Code: 111111');
      const login = loginOf(made.id);
      const { list } = await found(login, 1);
      await login.accepted(list.flatMap(({ mail: used }) => used ?? []));
    }
    expect(removed).toEqual([uid]);
  });

  test('that cannot be read are a fault with a name', async () => {
    const made = await create([imap]);
    failure = new MailboxFailure('refused');
    const { codes: none, faults } = await found(loginOf(made.id), 1);
    expect(none).toEqual([]);
    expect(faults).toEqual([
      {
        code: 'mailbox_refused',
        message: 'The mailbox INBOX of ann at imap.example refuses the user name or the password.',
      },
    ]);
    expect(opened).toHaveLength(1);
  });
});

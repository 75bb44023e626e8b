import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { sql } from '../../src/store/sql.ts';
import { listenOnLoopback } from '../support/listen.ts';
import { startMailCodeSite, type MailCodeSite } from '../support/logins/mail-code-site.ts';
import { provideDovecot, startDovecot, type MailServer } from '../support/mail-server.ts';
import { makeCertificate } from '../support/proxies.ts';
import { startService, type Service } from '../support/service.ts';

const users = { 'ann@orchard.example': 'planted-p4ss-ann', 'bob@orchard.example': 'planted-p4ss-bob' };
const [ann, bob] = Object.keys(users) as [keyof typeof users, keyof typeof users];
const mailbox = { user: 'team', password: 'planted-m4ilbox' };
const hasDovecot = await provideDovecot();

let mail: MailServer;
let site: MailCodeSite;
let service: Service;
/** Where the site sends its codes. */
let send: (username: string, code: string) => void | Promise<void>;
const sent: string[] = [];
beforeAll(async () => {
  if (hasDovecot) mail = await startDovecot({ [mailbox.user]: mailbox.password });
  site = await startMailCodeSite({
    users,
    async send(username, code) {
      sent.push(code);
      await send(username, code);
    },
  });
  service = await startService({ CORRAL_ALLOW_PRIVATE_HOSTS: '127.0.0.1', CORRAL_MAX_SESSIONS: '4' });
});
afterAll(async () => {
  await service?.close();
  await site?.close();
  await mail?.close();
});
afterEach(() => {
  site.answered.length = 0;
});

const toMailbox = (username: string, code: string) =>
  mail.deliver(mailbox.user, {
    to: username,
    subject: 'Your Orchard code',
    text: `Hello,\n\nyour verification code is:\n\n${code}\n\nOrder 20012002, call +1 800 555 0199.`,
    html: `<p>Your verification code</p><b>${code}</b>`,
  });

const source = (changes: object = {}) => ({
  type: 'imap',
  host: '127.0.0.1',
  port: mail.ports.tls,
  username: mailbox.user,
  password: mailbox.password,
  from: '*@shop.example',
  subject: 'orchard code',
  ca_bundle: mail.ca,
  ...changes,
});

let connections = 0;
async function connect(username: keyof typeof users, sources: object[]): Promise<string> {
  const name = `${username.split('@', 1)[0]}-${++connections}`;
  const made = await service.call('POST', '/credentials', {
    name,
    domain: site.host,
    values: { email: username, password: users[username] },
    one_time_code_sources: sources,
  });
  expect(made.status, made.text).toBe(201);
  const connection = await service.call('POST', '/auth/connections', {
    domain: site.host,
    profile_name: name,
    login_url: `${site.url}/login`,
    credential: { name },
  });
  expect(connection.status, connection.text).toBe(201);
  return connection.body.id;
}

const patience = { timeout: 120_000, interval: 300 };
const until = (id: string, expected: object) =>
  vi.waitFor(async () => {
    const { body } = await service.call('GET', `/auth/connections/${id}`);
    expect(body).toMatchObject(expected);
    return body;
  }, patience);
const logIn = async (id: string) => {
  const started = await service.call('POST', `/auth/connections/${id}/login`);
  expect(started.status, started.text).toBe(200);
};
const decisions = async (id: string) => {
  const { body } = await service.call('POST', `/auth/connections/${id}/explain`);
  return JSON.stringify(body);
};

/** Nothing of it may be in the log, nor in what the service answers. */
const secrets = () => [...Object.values(users), mailbox.password, ...sent];

describe.runIf(hasDovecot)('codes of a mailbox', () => {
  test('a first login and a later one need no person', { timeout: 300_000 }, async () => {
    send = toMailbox;
    // An old code, one of another sender, and one with another subject.
    mail.deliver(mailbox.user, { subject: 'Your Orchard code', text: 'Code: 111111', ageSeconds: 30 });
    const others = () => {
      mail.deliver(mailbox.user, { from: 'x@other.example', subject: 'Your Orchard code', text: 'Code: 222222' });
      mail.deliver(mailbox.user, { subject: 'News', text: 'Code: 333333' });
    };
    const id = await connect(ann, [source({ delete_after_use: true })]);
    others();
    await logIn(id);
    const done = await until(id, { flow_status: 'SUCCESS', status: 'AUTHENTICATED' });
    expect(site.answered).toEqual([`${ann} right password`, `${ann} right code`]);
    expect(done).toMatchObject({ can_reauth: true, can_reauth_reason: 'requirements_satisfiable' });
    await vi.waitFor(() => expect(mail.count(mailbox.user)).toBe(3), patience);

    site.endSessions();
    site.answered.length = 0;
    await service.app.store.db.rows(sql`update auth_connections set next_check_at = now() where id = ${id}`);
    await until(id, { flow_type: 'REAUTH', flow_status: 'SUCCESS', status: 'AUTHENTICATED' });
    expect(site.answered).toEqual([`${ann} right password`, `${ann} right code`]);
    await vi.waitFor(() => expect(mail.count(mailbox.user)).toBe(3), patience);
    await service.call('DELETE', `/auth/connections/${id}`);
  });

  test('STARTTLS is as good, and the mail stays', { timeout: 200_000 }, async () => {
    send = toMailbox;
    const before = mail.count(mailbox.user);
    const id = await connect(ann, [source({ port: mail.ports.starttls, security: 'starttls' })]);
    await logIn(id);
    await until(id, { flow_status: 'SUCCESS' });
    expect(mail.count(mailbox.user)).toBe(before + 1);
    await service.call('DELETE', `/auth/connections/${id}`);
  });

  test('two logins at once do not take the same code', { timeout: 300_000 }, async () => {
    send = toMailbox;
    const ids = await Promise.all([connect(ann, [source()]), connect(bob, [source()])]);
    await Promise.all(ids.map(logIn));
    await Promise.all(ids.map((id) => until(id, { flow_status: 'SUCCESS' })));
    expect(site.answered.toSorted()).toEqual(
      [ann, bob].flatMap((user) => [`${user} right code`, `${user} right password`]),
    );
    for (const id of ids) await service.call('DELETE', `/auth/connections/${id}`);
  });

  test('a wrong password is named, and the login waits for a person', { timeout: 200_000 }, async () => {
    let code = '';
    send = (_username, sentCode) => void (code = sentCode);
    const id = await connect(ann, [source({ password: 'wr0ng-mailbox' })]);
    await logIn(id);
    const asked = await until(id, { flow_step: 'AWAITING_INPUT', fields: [expect.objectContaining({ type: 'code' })] });
    expect(asked.external_action_message).toContain('looks for this code by itself');
    await vi.waitFor(async () => expect(await decisions(id)).toContain('mailbox_refused'), patience);
    expect(await decisions(id)).toContain(`The mailbox INBOX of ${mailbox.user} at 127.0.0.1 refuses`);
    await service.call('POST', `/auth/connections/${id}/submit`, { field_values: { [asked.fields[0].id]: code } });
    await until(id, { flow_status: 'SUCCESS', can_reauth: true });
    await service.call('DELETE', `/auth/connections/${id}`);
  });

  test('a certificate of an unknown authority is refused', { timeout: 200_000 }, async () => {
    let code = '';
    send = (_username, sentCode) => void (code = sentCode);
    const id = await connect(ann, [source({ ca_bundle: undefined })]);
    await logIn(id);
    await vi.waitFor(async () => expect(await decisions(id)).toContain('mailbox_tls_failed'), patience);
    await service.call('POST', `/auth/connections/${id}/codes`, { code });
    await until(id, { flow_status: 'SUCCESS' });
    await service.call('DELETE', `/auth/connections/${id}`);
  });
});

describe('codes that a program posts', () => {
  test('are typed, also if they come before the question', { timeout: 300_000 }, async () => {
    const id = await connect(bob, [{ type: 'webhook' }]);
    const { body: connection } = await service.call('GET', `/auth/connections/${id}`);
    const { body: credential } = await service.call('PATCH', `/credentials/${connection.credential.name}`, {
      one_time_code_sources: [{ type: 'webhook' }],
    });
    const [{ webhook_url: url, id: sourceId }] = credential.one_time_code_sources;
    expect(url).toMatch(new RegExp(`^${service.url}/one-time-codes/[\\w-]{32}$`));
    const post = (body: string, type: string) =>
      fetch(url, { method: 'POST', body, headers: { 'content-type': type } }).then(({ status }) => status);
    expect(await post('Your code is 999999', 'text/plain')).toBe(204);
    const bodies: [body: (code: string) => string, type: string][] = [
      [
        (code) => JSON.stringify({ from: '+491701234567', message: `Orchard: your code is ${code}` }),
        'application/json',
      ],
      [
        (code) => new URLSearchParams({ Body: `${code} is your code`, MessageSid: '4711471147' }).toString(),
        'application/x-www-form-urlencoded',
      ],
    ];
    await new Promise((resolve) => setTimeout(resolve, 6000)); // the code from before this login is too old for it
    for (const [body, type] of bodies) {
      site.answered.length = 0;
      send = async (_username, code) => expect(await post(body(code), type)).toBe(204);
      site.endSessions();
      await logIn(id);
      await until(id, { flow_status: 'SUCCESS' });
      expect(site.answered).toEqual([`${bob} right password`, `${bob} right code`]);
    }
    const kept = await service.call('PATCH', `/credentials/${credential.id}`, {
      one_time_code_sources: [{ type: 'webhook', id: sourceId }],
    });
    expect(kept.body.one_time_code_sources).toEqual([{ id: sourceId, type: 'webhook' }]);
    expect(await post('123456', 'text/plain')).toBe(204);
    await service.call('PATCH', `/credentials/${credential.id}`, { one_time_code_sources: null });
    expect(await post('123456', 'text/plain')).toBe(404);
    expect(await service.app.store.db.rows(sql`select id from posted_codes`)).toEqual([]);
    await service.call('DELETE', `/auth/connections/${id}`);
  });

  test('an unknown address and a large body are refused', async () => {
    const unknown = await fetch(`${service.url}/one-time-codes/${'a'.repeat(32)}`, { method: 'POST', body: '123456' });
    expect(unknown.status).toBe(404);
    const made = await service.call('POST', '/credentials', {
      name: 'large',
      domain: 'shop.example',
      values: {},
      one_time_code_sources: [{ type: 'webhook' }],
    });
    const [{ webhook_url: url }] = made.body.one_time_code_sources;
    const large = await fetch(url, { method: 'POST', body: 'a'.repeat(65 * 1024) });
    expect(large.status).toBe(413);
    expect(await fetch(url, { method: 'POST', body: 'nothing here' }).then(({ status }) => status)).toBe(204);
    const read = await service.call('GET', '/credentials/large');
    expect(read.body.one_time_code_sources).toEqual([{ id: expect.stringMatching(/^otc_/), type: 'webhook' }]);
    expect(await service.app.store.db.rows(sql`select 1 from secrets where kind = 'one-time code'`)).toEqual([]);
    await service.call('DELETE', '/credentials/large');
  });
});

describe('a mail server that is not to be trusted', () => {
  const create = (one: object) =>
    service.call('POST', '/credentials', {
      name: 'hostile',
      domain: 'shop.example',
      values: {},
      one_time_code_sources: [one],
    });

  test.each(['10.1.2.3', '169.254.169.254', '[::1]', '127.0.0.2', '192.168.0.1'])('%s is refused', async (host) => {
    const answer = await create({ type: 'imap', host, username: 'a', password: 'b' });
    expect(answer).toMatchObject({ status: 400, body: { code: 'code_source_host_refused' } });
    expect(answer.body.message).toContain('CORRAL_ALLOW_PRIVATE_HOSTS');
  });

  test(
    'one that streams for ever takes neither the memory nor the time of the service',
    { timeout: 200_000 },
    async () => {
      const dir = mkdtempSync(join(tmpdir(), 'corral-hostile-'));
      const ca = makeCertificate(dir, '127.0.0.1');
      const line = Buffer.from(`* 1 FETCH (FLAGS (${'\\Seen '.repeat(1000)}))\r\n`.repeat(20));
      const server = createServer({ cert: ca, key: readFileSync(join(dir, 'key.pem')) }, (socket) => {
        const flood = () => {
          while (!socket.destroyed && socket.write(line));
        };
        socket.on('drain', flood).on('error', () => {});
        socket.write('* OK hello\r\n');
        flood();
      });
      const { port, close } = await listenOnLoopback(server);
      try {
        let code = '';
        send = (_username, sentCode) => void (code = sentCode);
        const before = process.memoryUsage().rss;
        const id = await connect(ann, [
          { type: 'imap', host: '127.0.0.1', port, username: 'a', password: 'b', ca_bundle: ca },
        ]);
        await logIn(id);
        let most = 0;
        let slowest = 0;
        const watching = setInterval(() => void (most = Math.max(most, process.memoryUsage().rss)), 50);
        await vi.waitFor(async () => {
          const began = performance.now();
          const said = await decisions(id);
          slowest = Math.max(slowest, performance.now() - began);
          expect(said).toMatch(/mailbox_(bad_answer|timeout)/);
        }, patience);
        clearInterval(watching);
        expect(most - before).toBeLessThan(400 * 2 ** 20);
        expect(slowest).toBeLessThan(2000);
        await service.call('POST', `/auth/connections/${id}/codes`, { code });
        await until(id, { flow_status: 'SUCCESS' });
        await service.call('DELETE', `/auth/connections/${id}`);
      } finally {
        await close();
        rmSync(dir, { recursive: true });
      }
    },
  );
});

test('nothing secret is in the log', () => {
  const log = service.log.join('\n');
  for (const secret of secrets()) expect(log).not.toContain(secret);
  expect(log).not.toMatch(/one-time-codes\/(?!:token)/);
});

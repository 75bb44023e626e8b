import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer as createPlainServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { listenOnLoopback } from '../../../test/support/listen.ts';
import { makeCertificate } from '../../../test/support/proxies.ts';
import { destinations, parseAllowList } from '../../chromium/egress/destinations.ts';
import { imapMailboxes } from './mailbox.ts';

let dir: string;
let ca: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'corral-imap-'));
  ca = makeCertificate(dir, '127.0.0.1');
});
afterAll(() => rmSync(dir, { recursive: true }));

const mailboxes = imapMailboxes(destinations({ allow: parseAllowList('127.0.0.1') }));
const settings = { host: '127.0.0.1', username: 'ann', password: 'pl4nted', mailbox: 'INBOX', delete_after_use: false };
const signal = () => AbortSignal.timeout(120_000);

async function server(talk: (socket: Socket) => void, plain = false): Promise<number> {
  const one = plain
    ? createPlainServer(talk)
    : createServer({ cert: ca, key: readFileSync(join(dir, 'key.pem')) }, talk);
  const { port, close } = await listenOnLoopback(one);
  onTestFinished(async () => void (await close()));
  return port;
}

const note = (port: number, changes: object = {}) =>
  mailboxes.note({ ...settings, port, security: 'tls', ca_bundle: ca, ...changes }, signal());

/** Writes for as long as the connection takes more. */
function flood(socket: Socket, bytes: string): void {
  const chunk = Buffer.from(bytes.repeat(Math.ceil((64 * 1024) / bytes.length)));
  const write = () => {
    while (!socket.destroyed && socket.write(chunk));
  };
  socket.on('drain', write).on('error', () => {});
  write();
}

const floods: [string, begin: string, repeated: string][] = [
  ['a line that never ends', '* OK ', 'a'],
  ['lines without an end', '* OK hello\r\n', '* 1 FETCH (FLAGS (\\Seen))\r\n'],
  ['a literal that never ends', '* OK hello\r\n* 1 FETCH (BODY[] {4000000000}\r\n', 'a'],
  ['literals without an end', '* OK hello\r\n* 1 FETCH (A ', '{8}\r\naaaaaaaa B '],
  ['numbers', '* OK hello\r\n* SEARCH', ' 1'],
  ['parentheses', '* OK hello\r\n* X ', '('],
];
test.each(floods)('a server that sends %s is left', async (_, begin, repeated) => {
  const port = await server((socket) => {
    socket.write(begin);
    flood(socket, repeated);
  });
  const before = process.memoryUsage().rss;
  await expect(note(port)).rejects.toMatchObject({
    fault: expect.stringMatching(/^(bad_answer|timeout|unreachable)$/),
  });
  expect(process.memoryUsage().rss - before).toBeLessThan(300 * 2 ** 20);
});

test('a certificate of another authority is refused', async () => {
  const port = await server((socket) => void socket.on('error', () => {}));
  await expect(note(port, { ca_bundle: undefined })).rejects.toMatchObject({ fault: 'tls_failed' });
});

test('a certificate for another name is refused', async () => {
  const names = destinations({ allow: parseAllowList('127.0.0.1,localhost') });
  const port = await server((socket) => void socket.on('error', () => {}));
  const asked = imapMailboxes({
    check: async (_host, at) => ({
      host: 'imap.example',
      port: at,
      addresses: (await names.check('localhost', at)).addresses,
    }),
  });
  await expect(
    asked.note({ ...settings, host: 'imap.example', port, security: 'tls', ca_bundle: ca }, signal()),
  ).rejects.toMatchObject({ fault: 'tls_failed' });
});

test.each([
  ['offers no encryption', '* OK hello\r\n'],
  ['takes everybody', '* PREAUTH hello\r\n'],
])('a server that %s gets no password', async (_, greeting) => {
  const said: string[] = [];
  const port = await server((socket) => {
    socket.write(greeting);
    socket
      .on('error', () => {})
      .on('data', (data) => {
        said.push(String(data));
        for (const [, tag, command] of String(data).matchAll(/^(\S+) (\w+).*\r\n/gm))
          socket.write(`${command === 'CAPABILITY' ? '* CAPABILITY IMAP4rev1 AUTH=PLAIN\r\n' : ''}${tag} OK done\r\n`);
      });
  }, true);
  await expect(note(port, { security: 'starttls' })).rejects.toMatchObject({ fault: 'tls_failed' });
  expect(said.join('')).not.toMatch(/LOGIN|AUTHENTICATE|pl4nted/);
});

test('a private address is refused before anything is connected', async () => {
  const strict = imapMailboxes(destinations({}));
  let connected = false;
  const port = await server(() => void (connected = true));
  await expect(strict.note({ ...settings, port, security: 'tls', ca_bundle: ca }, signal())).rejects.toMatchObject({
    fault: 'address_refused',
  });
  expect(connected).toBe(false);
});

test('a closed port is unreachable', async () => {
  await expect(note(1)).rejects.toMatchObject({ fault: 'unreachable' });
});

test('nothing is left of a watch that was stopped', async () => {
  const port = await server((socket) => void socket.on('error', () => {}));
  const over = new AbortController();
  const watching = mailboxes.watch(
    { ...settings, port, security: 'tls', ca_bundle: ca },
    { after: undefined, since: 0, choose: () => [], read: async () => false, looked() {}, signal: over.signal },
  );
  setTimeout(() => over.abort(new Error('enough')), 300);
  await expect(watching).rejects.toThrow('enough');
});

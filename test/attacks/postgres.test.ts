import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, statSync } from 'node:fs';
import net from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { asRoot, requireSandbox } from '../support/sandbox.ts';
import { startService, type Service } from '../support/service.ts';

await requireSandbox();

/**
 * A client that gets as far as the database's socket, which the service itself can be brought to connect to, is let in only with the
 * password. Before there was one, every connection was a superuser's.
 */
let service: Service;
let socket: string;

beforeAll(async () => {
  service = await startService();
  socket = join(service.dataDir, 'postgres/.s.PGSQL.5432');
});
afterAll(() => service?.close());

const int32 = (value: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
};
/** PostgreSQL's protocol 3.0: who we are, and a question that does not wait to be let in. */
function startup(user: string): Buffer {
  const body = Buffer.from(`user\0${user}\0database\0postgres\0\0`);
  return Buffer.concat([int32(body.length + 8), int32(196608), body]);
}
function question(text: string): Buffer {
  const body = Buffer.from(`${text}\0`);
  return Buffer.concat([Buffer.from('Q'), int32(body.length + 4), body]);
}
const attack = Buffer.concat([
  startup('corral'),
  question("select 'superuser=' || rolsuper from pg_roles where rolname = current_user"),
]);

/** Everything that is said until it hangs up, or has answered. */
async function raw(bytes: Buffer): Promise<string> {
  const client = net.connect(socket);
  await once(client, 'connect');
  client.write(bytes);
  let said = '';
  client.on('data', (chunk) => {
    said += chunk.toString('latin1');
    if (/superuser=|Fatal|FATAL/.test(said)) client.end();
  });
  client.on('error', () => {});
  client.setTimeout(20_000, () => client.destroy());
  await new Promise((resolve) => client.once('close', resolve)); // by a reset as well
  return said;
}

test('a connection without the password is refused and receives no data', async () => {
  const said = await raw(attack);
  expect(said).not.toContain('superuser=');
  expect(said).toContain('SCRAM-SHA-256'); // what it is asked for first
});

test('every role of the database needs the password', async () => {
  for (const user of ['postgres', 'pg_read_all_data', 'nobody']) {
    const said = await raw(Buffer.concat([startup(user), question('select 1')]));
    expect(said.slice(0, 1), user).toMatch(/[RE]/);
    expect(said, user).toMatch(/SCRAM-SHA-256|FATAL/);
  }
});

/** The same as another uid of the machine. Perl, since Node may not be where that uid can read it. */
const PERL =
  'use IO::Socket::UNIX; $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or do { print "closed: $!"; exit }; ' +
  'print $s pack("H*", $ARGV[1]); alarm 20; while (sysread $s, $b, 4096) { $all .= $b; last if $all =~ /superuser=|FATAL/ } print $all';

test.runIf(asRoot)('neither the server’s own user nor a stranger is let in without it', async () => {
  const { uid, gid } = statSync(join(service.dataDir, 'postgres'));
  for (const [who, ids] of Object.entries({ server: { uid, gid }, stranger: { uid: 54321, gid: 54321 } })) {
    const { stdout } = await promisify(execFile)('perl', ['-e', PERL, socket, attack.toString('hex')], {
      ...ids,
      cwd: '/',
    });
    expect(stdout, who).not.toContain('superuser=');
    expect(stdout, who).toMatch(who === 'server' ? /SCRAM-SHA-256|Permission denied/ : /Permission denied/);
  }
});

test('the password is in a private file, and in no log, environment or command line', async () => {
  const file = join(service.dataDir, 'postgres-password');
  expect(statSync(file)).toMatchObject({ uid: process.getuid!() });
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const password = readFileSync(file, 'utf8').trim();
  expect(Buffer.from(password, 'base64url')).toHaveLength(32);

  expect(service.log.join('')).not.toContain(password);
  expect(readFileSync(join(service.dataDir, 'postgres.log'), 'utf8')).not.toContain(password);
  const postmaster = readFileSync(join(service.dataDir, 'postgres/postmaster.pid'), 'utf8').split('\n')[0];
  for (const name of ['cmdline', 'environ'])
    expect(readFileSync(`/proc/${postmaster}/${name}`, 'utf8')).not.toContain(password);
  // The server itself keeps a verifier only.
  const { stdout } = await promisify(execFile)('grep', ['-rlF', password, join(service.dataDir, 'postgres')]).catch(
    (error: { stdout: string }) => error,
  );
  expect(stdout).toBe('');
});

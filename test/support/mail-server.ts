import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { aptInstall } from '../../scripts/apt.mjs';
import { isDebian, isRoot } from '../../scripts/parts.mjs';
import { freePort } from './listen.ts';
import { makeCertificate } from './proxies.ts';

const program = '/usr/sbin/dovecot';
const imap = '/usr/lib/dovecot/imap';
/** `nobody`, as whom the server runs and who owns the mails. */
const nobody = 65_534;

/** Brings dovecot in where that is possible. False: it is not here, and cannot be; in CI that is a failure, not a choice. */
export async function provideDovecot(): Promise<boolean> {
  const isHere = () => existsSync(program) && existsSync(imap);
  if (!isHere() && isRoot() && isDebian()) await aptInstall(['dovecot-core', 'dovecot-imapd']);
  if (!isHere() && process.env['CI']) throw new Error('Not to be had here: dovecot-imapd.');
  return isHere();
}

export interface SentMail {
  from?: string;
  to?: string;
  subject?: string;
  text?: string;
  html?: string;
  /** How long ago it arrived. */
  ageSeconds?: number;
}

export type MailServer = Awaited<ReturnType<typeof startDovecot>>;

/** A dovecot without root rights, with a certificate of its own and a Maildir for each user. */
export async function startDovecot(users: Record<string, string>) {
  const dir = mkdtempSync(join(tmpdir(), 'corral-mail-'));
  const ca = makeCertificate(dir, '127.0.0.1');
  const [tls, starttls] = [await freePort(), await freePort()];
  writeFileSync(
    join(dir, 'users'),
    Object.entries(users)
      .map(([name, password]) => `${name}:{PLAIN}${password}\n`)
      .join(''),
  );
  for (const name of Object.keys(users))
    for (const folder of ['cur', 'new', 'tmp']) mkdirSync(join(dir, 'mail', name, folder), { recursive: true });
  const user = isRoot() ? 'nobody' : process.env['USER'];
  writeFileSync(
    join(dir, 'dovecot.conf'),
    `base_dir = ${dir}/run
state_dir = ${dir}/run
log_path = ${dir}/log
protocols = imap
listen = 127.0.0.1
ssl = required
ssl_cert = <${dir}/cert.pem
ssl_key = <${dir}/key.pem
disable_plaintext_auth = yes
auth_mechanisms = plain login
# A wrong password is answered at once.
auth_failure_delay = 0
default_internal_user = ${user}
default_login_user = ${user}
default_internal_group = ${isRoot() ? 'nogroup' : user}
mail_location = maildir:${dir}/mail/%u
first_valid_uid = 1
passdb {
  driver = passwd-file
  args = ${dir}/users
}
userdb {
  driver = static
  args = uid=${isRoot() ? nobody : process.getuid!()} gid=${isRoot() ? nobody : process.getgid!()} home=${dir}/mail/%u
}
service anvil {
  chroot =
}
service stats {
  chroot =
}
service imap-login {
  chroot =
  inet_listener imap {
    port = ${starttls}
  }
  inet_listener imaps {
    port = ${tls}
    ssl = yes
  }
}
`,
  );
  if (isRoot()) execFileSync('chown', ['-R', `${nobody}:${nobody}`, dir]);
  const asNobody = isRoot() ? ['--reuid', String(nobody), '--regid', String(nobody), '--clear-groups'] : [];
  const words = ['--pdeathsig', 'TERM', ...asNobody, '--', program, '-F', '-c', join(dir, 'dovecot.conf')];
  const child = spawn('setpriv', words, { stdio: ['ignore', 'pipe', 'pipe'], cwd: dir });
  let output = '';
  child.stdout.on('data', (chunk) => (output += chunk));
  child.stderr.on('data', (chunk) => (output += chunk));
  const exited = once(child, 'exit');
  const log = () => (existsSync(join(dir, 'log')) ? readFileSync(join(dir, 'log'), 'utf8') : '') + output;
  const close = async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
    await exited;
    rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
  };
  for (const until = Date.now() + 20_000; !(await listens(tls)); await sleep(50)) {
    if (child.exitCode !== null || Date.now() > until) {
      const said = log();
      await close();
      throw new Error(`dovecot did not start:\n${said}`);
    }
  }

  let sent = 0;
  /** Puts a mail into the inbox of a user, as a delivery agent does. */
  function deliver(name: string, mail: SentMail): void {
    const { from = 'Shop <no-reply@shop.example>', to = name, subject = 'Mail', text, html, ageSeconds = 0 } = mail;
    const file = `${Date.now()}.M${++sent}P${process.pid}.test`;
    const at = new Date(Date.now() - 1000 * ageSeconds);
    const head = [
      `From: ${from}`,
      `To: ${to}`,
      `Subject: ${subject}`,
      `Date: ${at.toUTCString()}`,
      'MIME-Version: 1.0',
    ];
    const parts = [
      ...(text === undefined ? [] : [{ type: 'plain', body: text }]),
      ...(html === undefined ? [] : [{ type: 'html', body: html }]),
    ].map(({ type, body }) => [
      `Content-Type: text/${type}; charset=utf-8`,
      'Content-Transfer-Encoding: base64',
      '',
      Buffer.from(body).toString('base64').replace(/.{76}/g, '$&\r\n'),
    ]);
    const whole =
      parts.length === 1
        ? [...head, ...parts[0]!]
        : [
            ...head,
            'Content-Type: multipart/alternative; boundary=between',
            '',
            ...parts.flatMap((part) => ['--between', ...part]),
            '--between--',
          ];
    const path = join(dir, 'mail', name, 'tmp', file);
    writeFileSync(path, `${whole.join('\r\n')}\r\n`, { mode: 0o644 });
    execFileSync('touch', ['-d', at.toISOString(), path]);
    if (isRoot()) chownSync(path, nobody, nobody);
    renameSync(path, join(dir, 'mail', name, 'new', file));
  }

  return {
    host: '127.0.0.1',
    ports: { tls, starttls },
    ca,
    deliver,
    /** How many mails a user has. */
    count: (name: string) => ['cur', 'new'].flatMap((folder) => readdirSync(join(dir, 'mail', name, folder))).length,
    log,
    close,
  };
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}

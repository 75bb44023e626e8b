import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { aptInstall } from '../../scripts/apt.mjs';
import { isDebian, isRoot } from '../../scripts/parts.mjs';
import { freePort } from './listen.ts';

/** Real proxies from Debian's packages, each with an address of its own on loopback that its traffic comes from. */
const programs = {
  squid: '/usr/sbin/squid',
  tinyproxy: '/usr/bin/tinyproxy',
  'dante-server': '/usr/sbin/danted',
  microsocks: '/usr/bin/microsocks',
};

/** Brings them in where that is possible. False: they are not here, and cannot be; in CI that is a failure, not a choice. */
export const provideProxies = () => provide(programs);

/** The reverse proxy that most operators put in front. */
const nginx = { 'nginx-light': '/usr/sbin/nginx' };
export const provideNginx = () => provide(nginx);

/** What the samples of the reference use. */
export const provideSampleTools = () =>
  provide({ curl: '/usr/bin/curl', 'python3-requests': '/usr/lib/python3/dist-packages/requests' });

async function provide(wanted: Record<string, string>): Promise<boolean> {
  const missing = () => Object.entries(wanted).flatMap(([name, path]) => (existsSync(path) ? [] : [name]));
  if (missing().length > 0 && isRoot() && isDebian()) await aptInstall(missing());
  if (missing().length > 0 && process.env['CI']) throw new Error(`Not to be had here: ${missing().join(', ')}.`);
  return missing().length === 0;
}

export interface RunningProxy {
  protocol: 'http' | 'https' | 'socks5';
  host: string;
  port: number;
  username?: string;
  password?: string;
  /** Where servers see its traffic come from. */
  exit: string;
  ca?: string;
  /** What it wrote down so far. */
  log(): string;
  kill(signal?: NodeJS.Signals): Promise<void>;
}

export interface SquidOptions {
  exit: string;
  /** Ports that CONNECT may use, besides 443. Other ports are refused, as in squid's default configuration. */
  connectTo?: number[];
  /** Names that only this proxy knows. */
  hosts?: Record<string, string>;
  login?: { username: string; password: string };
  tls?: boolean;
}

/** What a squid keeps in shared memory is named after it, and stays when it is killed: two must not have one name. */
const nameOf = (dir: string) => basename(dir).replace(/\W/g, '');

export function startSquid({ exit, connectTo = [], hosts = {}, login, tls }: SquidOptions): Promise<RunningProxy> {
  return start(programs.squid, exit, (dir, port) => {
    writeFileSync(
      join(dir, 'hosts'),
      Object.entries(hosts)
        .map(([name, address]) => `${address} ${name}\n`)
        .join(''),
    );
    if (login) writeFileSync(join(dir, 'passwd'), `${login.username}:${md5crypt(login.password)}\n`);
    const certificate = tls ? makeCertificate(dir, '127.0.0.1') : undefined;
    const listen = certificate
      ? `https_port 127.0.0.1:${port} tls-cert=${dir}/cert.pem tls-key=${dir}/key.pem`
      : `http_port 127.0.0.1:${port}`;
    writeFileSync(
      join(dir, 'squid.conf'),
      `${listen}
pid_filename none
access_log stdio:${dir}/log
cache_log ${dir}/cache.log
coredump_dir ${dir}
cache deny all
memory_pools off
hosts_file ${dir}/hosts
dns_nameservers 127.0.0.1
shutdown_lifetime 0 seconds
pinger_enable off
tcp_outgoing_address ${exit}
acl SSL_ports port 443 ${connectTo.join(' ')}
acl Safe_ports port 80 443 1025-65535
http_access deny !Safe_ports
http_access deny CONNECT !SSL_ports
${
  login
    ? `auth_param basic program /usr/lib/squid/basic_ncsa_auth ${dir}/passwd
auth_param basic children 1
acl known proxy_auth REQUIRED
http_access allow known
http_access deny all`
    : 'http_access allow localhost'
}
`,
    );
    return {
      args: ['-N', '-n', nameOf(dir), '-f', join(dir, 'squid.conf')],
      about: { protocol: tls ? 'https' : 'http', ...login, ...(certificate ? { ca: certificate } : {}) },
    };
  });
}

export function startTinyproxy(options: { exit: string; login?: { username: string; password: string } }) {
  const { exit, login } = options;
  return start(programs.tinyproxy, exit, (dir, port) => {
    const auth = login ? `BasicAuth ${login.username} ${login.password}\n` : '';
    writeFileSync(
      join(dir, 'tinyproxy.conf'),
      `Port ${port}\nListen 127.0.0.1\nBind ${exit}\nTimeout 60\nLogFile "${dir}/log"\nLogLevel Info\nMaxClients 100\n${auth}`,
    );
    return { args: ['-d', '-c', join(dir, 'tinyproxy.conf')], about: { protocol: 'http', ...login } };
  });
}

export function startDante({ exit }: { exit: string }) {
  return start(programs['dante-server'], exit, (dir, port) => {
    writeFileSync(
      join(dir, 'danted.conf'),
      `logoutput: ${dir}/log
internal: 127.0.0.1 port = ${port}
external: ${exit}
clientmethod: none
socksmethod: none
client pass { from: 127.0.0.0/8 to: 0.0.0.0/0 }
socks pass { from: 127.0.0.0/8 to: 0.0.0.0/0 log: connect error }
`,
    );
    return { args: ['-f', join(dir, 'danted.conf'), '-p', join(dir, 'pid')], about: { protocol: 'socks5' } };
  });
}

/** Dante knows only the system's own users, so a SOCKS proxy with a password is another one. */
export function startMicrosocks({ exit, login }: { exit: string; login: { username: string; password: string } }) {
  return start(programs.microsocks, exit, (_dir, port) => ({
    args: ['-i', '127.0.0.1', '-p', String(port), '-b', exit, '-u', login.username, '-P', login.password],
    about: { protocol: 'socks5', ...login },
  }));
}

/** Ends TLS and passes everything on to a service, websockets included. */
export function startNginx({ to }: { to: string }): Promise<RunningProxy> {
  return start(nginx['nginx-light'], '127.0.0.1', (dir, port) => {
    const ca = makeCertificate(dir, '127.0.0.1');
    const scratch = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (kind) => `${kind}_temp_path ${dir}/${kind};`,
    );
    writeFileSync(
      join(dir, 'nginx.conf'),
      `daemon off;
master_process off;
pid ${dir}/pid;
error_log stderr;
events {}
http {
  access_log off;
  ${scratch.join(' ')}
  map $http_upgrade $connection_kind { default upgrade; '' ''; }
  server {
    listen 127.0.0.1:${port} ssl;
    ssl_certificate ${dir}/cert.pem;
    ssl_certificate_key ${dir}/key.pem;
    client_max_body_size 0;
    location / {
      proxy_pass ${to};
      proxy_http_version 1.1;
      proxy_set_header Host $http_host;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection $connection_kind;
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_read_timeout 1h;
      proxy_buffering off;
    }
  }
}
`,
    );
    return { args: ['-p', dir, '-c', join(dir, 'nginx.conf'), '-e', 'stderr'], about: { protocol: 'https', ca } };
  });
}

type About = Pick<RunningProxy, 'protocol' | 'username' | 'password' | 'ca'>;

async function start(
  program: string,
  exit: string,
  configure: (dir: string, port: number) => { args: string[]; about: About },
): Promise<RunningProxy> {
  const dir = mkdtempSync(join(tmpdir(), 'corral-proxy-'));
  const port = await freePort();
  const { args, about } = configure(dir, port);
  // As user `nobody`, and killed when the test process ends.
  const asNobody = isRoot() ? ['--reuid', '65534', '--regid', '65534', '--clear-groups'] : [];
  const words = ['--pdeathsig', 'KILL', ...asNobody, '--', program, ...args];
  if (isRoot()) execFileSync('chown', ['-R', '65534:65534', dir]);
  const child = spawn('setpriv', words, { stdio: ['ignore', 'pipe', 'pipe'], cwd: dir });
  let output = '';
  child.stdout.on('data', (chunk) => (output += chunk));
  child.stderr.on('data', (chunk) => (output += chunk));
  const exited = once(child, 'exit');
  const log = () => (existsSync(join(dir, 'log')) ? readFileSync(join(dir, 'log'), 'utf8') : '') + output;
  const kill = async (signal: NodeJS.Signals = 'SIGKILL') => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal);
    await exited;
    rmSync(dir, { recursive: true, force: true });
    for (const name of readdirSync('/dev/shm'))
      if (name.startsWith(`${nameOf(dir)}-`)) rmSync(join('/dev/shm', name), { force: true });
  };
  for (const until = Date.now() + 20_000; !(await listens(port)); await sleep(50)) {
    if (child.exitCode !== null || Date.now() > until) {
      const cacheLog = join(dir, 'cache.log');
      const said = log() + (existsSync(cacheLog) ? readFileSync(cacheLog, 'utf8') : '');
      await kill();
      throw new Error(`${program} did not start:\n${said}`);
    }
  }
  return { host: '127.0.0.1', port, exit, log, kill, ...about };
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}

const md5crypt = (password: string) => execFileSync('openssl', ['passwd', '-1', password], { encoding: 'utf8' }).trim();

/** A key, and a certificate that vouches for itself. Returns the certificate. */
export function makeCertificate(
  dir: string,
  address: string,
  newKey = 'ec -pkeyopt ec_paramgen_curve:prime256v1',
): string {
  const [key, cert] = [join(dir, 'key.pem'), join(dir, 'cert.pem')];
  execFileSync(
    'openssl',
    `req -x509 -newkey ${newKey} -nodes -days 2 -subj /CN=corral-test -addext subjectAltName=IP:${address},DNS:localhost,DNS:shop.test -keyout ${key} -out ${cert}`.split(
      ' ',
    ),
    { stdio: 'ignore' },
  );
  return readFileSync(cert, 'utf8');
}

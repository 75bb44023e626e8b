import { spawn, type ChildProcess } from 'node:child_process';
import type net from 'node:net';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { andNoOther } from '../sandbox/descriptors.ts';
import type { Viewport } from './viewport.ts';
import { furnishDisplay } from '../sandbox/furnish.ts';
import { displayKeymap } from './keymap.ts';
import { LOWER } from '../sandbox/lowered.ts';
import { pinForRemoval, pinSocket, type PinnedSocket } from '../sandbox/outside.ts';
import type { Owner } from '../sandbox/owners.ts';
import { DEFAULT_REFRESH_RATE } from './refresh-rate.ts';
import { MANAGE_WINDOWS, windowManagerConfig, WINDOWS_MANAGED } from './window-manager.ts';
import { resizeDisplay } from './rfb.ts';
import { running, type Running } from '../sandbox/sandboxed-process.ts';
import { withFilter } from '../sandbox/seccomp.ts';
import { stepDown } from '../sandbox/entry.ts';
import { HOSTNAME, PATH, STAGE, systemDirectories, UID, X_SOCKETS } from '../sandbox/mounts.ts';
import { letGo, readInit } from '../sandbox/sandbox.ts';

/**
 * The display of a headful session: TigerVNC's Xvnc, an X server that sends its screen as an RFB stream. The service speaks RFB with it, so
 * it is not in the session's sandbox but in a separate one, with its own user, mount, pid and network namespaces. The session
 * sees the X socket in a directory that it cannot write. Only the display's sandbox sees the RFB socket, which is pinned
 * before any process of the session runs: not even a compromised display can lead the service to another socket.
 *
 * The IPC namespace is shared with the session: Chromium passes pictures by System V shared memory. Over the socket instead,
 * a page that scrolls at 1920x1080 took 75 % of a core in the GPU process instead of 23 %, and lost a third of its frames.
 */
export interface Display extends Running {
  readonly pid: number;
  /** Lets it start. Call it once the display is in its cgroup. */
  go(): void;
  /** Resolves when its namespaces can be entered. */
  readonly up: Promise<void>;
  /** Resolves when it accepts clients, with the value for DISPLAY. */
  readonly ready: Promise<string>;
  /** Whether a window manager places its windows. Known when it is ready. */
  windowsManaged(): boolean;
  /** Opens an RFB connection. */
  readonly connect: ConnectDisplay;
}

/** Opens a connection to a display. It fails when the display has exited. */
export type ConnectDisplay = () => net.Socket;

/** The longest path of a unix socket, without the final zero byte. */
const SOCKET_PATH = 107;
const RFB_DIRECTORY = '/run/rfb';

/**
 * The screen starts a pixel larger than the viewport, and `fitDisplay` then makes it fit. Chromium makes a window that is set to
 * exactly the screen's size a pixel smaller, because some window managers would take it for a
 * full-screen window. A kiosk, which takes the screen's size, is a pixel smaller for the same reason.
 */
export async function startDisplay(
  dir: string,
  {
    owner,
    sandboxed,
    managed,
    lower = {},
  }: { owner: Owner; sandboxed: boolean; managed: boolean; lower?: Record<string, string> },
  { width, height, refreshRate = DEFAULT_REFRESH_RATE }: Viewport,
): Promise<Display> {
  const outside = join(dir, 'display/rfb');
  const rfb = join(sandboxed ? RFB_DIRECTORY : outside, 'rfb');
  await furnishDisplay(dir, owner);
  const command = ['sh', '-c', SCRIPT, 'corral', rfb, `${width + 1}x${height + 1}`, String(refreshRate)];
  command.push(managed ? windowManagerConfig({ width, height }) : '');
  const child = sandboxed ? spawnSandboxed(dir, owner, command, lower) : spawnUnsandboxed(dir, owner, command);
  const { pid } = child;
  if (pid === undefined) throw new Error('The display could not be started.');

  let socket: PinnedSocket | undefined;
  let removeSocket = () => {};
  const init = sandboxed ? readInit(child, 4) : Promise.resolve(undefined);
  let over = false;
  let windowsManaged = false;
  const display = running({ child, init }, undefined, async () => {
    over = true;
    socket?.close();
    removeSocket();
  });
  const said = words(child);
  const up = said.next();
  const ready = up
    .then(() => said.next())
    .then((line) => {
      const [number, manager] = line.split(' ');
      // The display's line may be read after its end: a socket that is pinned then would never be closed.
      if (over) throw new Error('it has ended');
      socket = pinSocket(join(outside, 'rfb'));
      windowsManaged = manager === 'up';
      // Without a sandbox, the X socket is in a directory of the host, where a killed Xvnc leaves it.
      if (!sandboxed) removeSocket = pinForRemoval(join(X_SOCKETS, `X${Number(number)}`));
      return `:${number}`;
    })
    .catch((error: Error) => {
      throw new Error(`the display did not start. ${display.logTail().slice(-5).join('\n')}`, { cause: error });
    });
  const entered = up.then(() => {});
  // Callers that await these get the errors. A launch that is cancelled before it awaits them must not end the service.
  for (const promise of [entered, ready]) promise.catch(() => {});
  return {
    ...display,
    pid,
    go: () => letGo(child),
    up: entered,
    ready,
    windowsManaged: () => windowsManaged,
    connect() {
      if (!socket) throw new Error('The display is not ready.');
      return socket.connect();
    },
  };
}

/**
 * Resizes the display to the window. While the browser runs, set the window's bounds over CDP first
 * (Browser.setWindowBounds) and then the display's: in the other order the window is a pixel too small.
 */
export function fitDisplay(connect: ConnectDisplay, viewport: Viewport, signal: AbortSignal): Promise<void> {
  return resizeDisplay(connect, viewport, signal);
}

/** Without a sandbox, the display opens its socket at the host's path, which has a limited length. */
export const tooLongForDisplay = (dir: string) => Buffer.byteLength(join(dir, 'display/rfb/rfb')) > SOCKET_PATH;

function spawnSandboxed(dir: string, owner: Owner, command: string[], lower: Record<string, string>): ChildProcess {
  const asRoot = process.getuid?.() === 0;
  const args: string[] = [];
  const add = (...words: string[]) => args.push(...words);
  add('--unshare-user', '--uid', String(UID), '--gid', String(UID));
  add('--unshare-pid', '--unshare-net', '--unshare-uts', '--unshare-cgroup-try', '--hostname', HOSTNAME);
  add('--die-with-parent', '--info-fd', '4', '--clearenv', '--setenv', 'PATH', PATH);
  add(...systemDirectories(), '--proc', '/proc', '--dev', '/dev', '--size', String(64 * 2 ** 20), '--tmpfs', '/tmp');
  for (const path of ['/etc/fonts', '/var/cache/fontconfig']) add('--ro-bind-try', path, path); // for the titles of windows
  add('--bind', `${STAGE}/display/x11`, X_SOCKETS, '--bind', `${STAGE}/display/rfb`, RFB_DIRECTORY);
  add('--remount-ro', '/', '--chdir', '/');
  const unshare = ['--ipc', '--mount', ...(asRoot ? [] : ['--user', '--map-root-user'])];
  return withFilter('helper', 5, (filter, words) => {
    const way = [...(asRoot ? stepDown(owner) : []), 'bwrap', ...words, ...args, '--', ...command];
    return spawn('unshare', [...unshare, '--', 'sh', '-c', OUTER_SCRIPT, 'corral', dir, ...way], {
      stdio: andNoOther('pipe', 'ignore', 'pipe', 'pipe', 'pipe', ...filter),
      detached: true,
      cwd: '/',
      env: { PATH, ...lower },
    });
  });
}

function spawnUnsandboxed(dir: string, { uid, gid }: Owner, command: string[]): ChildProcess {
  return spawn('sh', ['-c', UNSANDBOXED_SCRIPT, 'corral', ...command], {
    stdio: andNoOther('pipe', 'ignore', 'pipe', 'pipe'),
    detached: true,
    cwd: '/',
    env: { PATH, TMPDIR: join(dir, 'display/rfb') },
    ...(process.getuid?.() === 0 ? { uid, gid } : {}),
  });
}

/** Each `next` resolves with the next line on descriptor 3; it rejects once there are no more. */
function words(child: ChildProcess): { next(): Promise<string> } {
  const stream = child.stdio[3];
  if (!(stream instanceof Readable)) throw new Error('spawned without pipes');
  const lines: string[] = [];
  const waiting: { resolve: (line: string) => void; reject: (error: Error) => void }[] = [];
  let partial = '';
  let over = false;
  stream.setEncoding('utf8').on('data', (text: string) => {
    const parts = (partial + text).split('\n');
    partial = parts.pop()!;
    for (const line of parts) {
      const asker = waiting.shift();
      if (asker) asker.resolve(line);
      else lines.push(line);
    }
  });
  stream.on('close', () => {
    over = true;
    for (const { reject } of waiting.splice(0)) reject(new Error('The display ended.'));
  });
  return {
    next: () =>
      new Promise((resolve, reject) => {
        const line = lines.shift();
        if (line !== undefined) resolve(line);
        else if (over) reject(new Error('The display ended.'));
        else waiting.push({ resolve, reject });
      }),
  };
}

/** Runs as root of the new namespaces: `$1` is mounted at the stage, the rest is the command. */
const OUTER_SCRIPT = `
read -r go || exit 1
exec </dev/null >&2
${LOWER}
mount --bind "$1" ${STAGE} || exit 1
shift
echo up >&3
exec "$@"
`;

const UNSANDBOXED_SCRIPT = `
read -r go || exit 1
exec </dev/null >&2
${LOWER}
echo up >&3
exec "$@"
`;

const XVNC = [
  'Xvnc',
  '-rfbunixpath "$1" -rfbunixmode 0600', // the service connects here
  '-geometry "$2" -depth 24', // the screen is the viewport; the window fills it
  '-FrameRate "$3"', // most updates per second for each viewer
  '-AllowOverride FrameRate', // the one parameter that may be set while it runs; by default also those for input
  '-rfbport -1', // no TCP port for viewers
  '-nolisten tcp', // no TCP port for X clients
  '-SecurityTypes None', // access to the socket is enough to watch; the service checks viewers' tokens
  '-AlwaysShared', // several viewers at once
  '-AcceptSetDesktopSize=1', // the viewport may change while the browser runs
  '-br -noreset', // black until the window appears; do not reset when the last client disconnects
  '-desktop browser', // its name; the default needs a user and a host, which are missing
  '-Log *:stderr:30', // the service reads stderr
  '-displayfd 5', // picks a free number, and writes it here when ready
].join(' ');

/** No timeouts: opening the fifo waits until Xvnc is started, reading it until Xvnc is ready or has exited. */
const SCRIPT = `
set -f
ready="$(mktemp -u)"
mkfifo -m 600 "$ready" || exit 1
${XVNC} 3>&- 4>&- 5>"$ready" &
xvnc=$!
read -r number <"$ready" || exit 1
rm "$ready"
${MANAGE_WINDOWS}
xkbcomp -w0 - ":$number" 3>&- <<'KEYS' || echo 'the keymap could not be set; letters beyond ASCII may get lost'
${displayKeymap()}
KEYS
${WINDOWS_MANAGED}
echo "$number $manager" >&3
exec 3>&-
wait "$xvnc"
`;

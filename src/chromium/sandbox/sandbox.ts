import { spawn, type ChildProcess } from 'node:child_process';
import net from 'node:net';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { andNoOther } from './descriptors.ts';
import { stepDown } from './entry.ts';
import { bubblewrap, environment, EXTENSIONS, HOME, PATH, STAGE, type Needs } from './mounts.ts';
import type { Owner } from './owners.ts';
import { GATEWAY_PORT, HELPER, SCRIPT, UNSANDBOXED_SCRIPT } from './scripts.ts';
import { withFilter } from './seccomp.ts';

/**
 * One session's sandbox, as a process tree:
 *
 *     service
 *     └─ bwrap              was `unshare`, then a shell, before exec; leader of the session's process group
 *        ├─ (ip, node)      short-lived: create the network, send its listening socket to the service, and exit
 *        └─ bwrap           process 1 of the pid namespace: when it exits, the kernel kills everything below
 *           └─ the command  Chromium; a headful one has its display in a separate sandbox (display.ts)
 *
 * Each process dies with its parent: the outer bwrap with the service, process 1 with the outer bwrap, the rest with
 * process 1. At no moment can an orphaned process outlive the service.
 *
 * Under root root owns the network and mount namespaces, and an unprivileged user (setpriv) creates the rest; an ordinary user
 * creates all of them in a user namespace in which it is root (unshare). Either way Chromium sees uid 1000, has no
 * capabilities and can gain none, and has an unprivileged uid outside too: under root a unique one (owners.ts).
 */

/** Where a session's browser runs: the paths as the browser sees them, and how to start a command there. */
interface Place {
  readonly userData: string;
  /** The session's `extensions`. */
  readonly extensions: string;
  readonly gatewayPort: number;
  start(command: readonly string[], needs?: Needs): Process;
  /** Closes the listening socket, or the server that was made from it. */
  close(): void;
}

export interface Process {
  readonly child: ChildProcess;
  /** The command reads `toCommand` on descriptor 3 and writes `fromCommand` on 4. */
  readonly toCommand: Writable;
  readonly fromCommand: Readable;
  /** The gateway's socket. It listens once this resolves, but accepts nothing before the returned function is called. */
  readonly egress: Promise<() => net.Server>;
  /** The sockets of the listeners, in their order, in the same way. */
  readonly listeners: Promise<(() => net.Server)[]>;
  /** Host pid of process 1 of the session's pid namespace; undefined where there is none. */
  readonly init: Promise<number | undefined>;
  /**
   * Lets the process continue. Until then it waits, so that it can be put in its cgroup before it has children. The command itself
   * waits for the display, if there is one.
   */
  readonly go: (display?: Promise<string>) => void;
}

/** Each started command gets its own sandbox; a session starts one command. */
export function sandboxed(dir: string, owner: Owner): Place {
  const asRoot = process.getuid?.() === 0;
  const drop = asRoot ? stepDown(owner) : [];
  const sockets: { close(): void }[] = [];

  return {
    userData: `${HOME}/user-data`,
    extensions: EXTENSIONS,
    gatewayPort: GATEWAY_PORT,

    start(command, needs = {}) {
      const { tools, app, display, listeners = [] } = needs;
      const listed = listeners.map(({ address, port }) => `${address},${port}`).join(' ');
      const script = ['sh', '-c', SCRIPT, 'corral', dir, tools ?? '', app ?? '', listed, process.execPath, HELPER];
      const shown = {
        ...needs,
        tools: tools === undefined ? undefined : join(STAGE, 'tools'),
        app: app === undefined ? undefined : join(STAGE, 'app'),
      };
      const child = withFilter('browser', 7, (filter, words) => {
        const inside = [...script, ...drop, 'bwrap', ...words, ...bubblewrap(STAGE, shown), '--', ...command];
        const [file = '', ...args] = [...namespaces(display), '--', ...inside];
        return spawn(file, args, {
          stdio: andNoOther('pipe', 'ignore', 'pipe', 'pipe', 'pipe', 'ipc', 'pipe', ...filter),
          detached: true, // a separate session and process group, so that a signal to the group reaches all its processes
          cwd: '/',
          env: { PATH, ...needs.lower }, // also for speed: a NODE_EXTRA_CA_CERTS alone makes the helper 55 ms slower
        });
      });
      const received = receiveSockets(child, 1 + listeners.length, sockets);
      return {
        child,
        ...pipes(child),
        egress: handled(received.then(([egress]) => egress!)),
        listeners: handled(received.then(([, ...listeners]) => listeners)),
        init: readInit(child, 6),
        go: (display) => letGo(child, display),
      };
    },

    close: () => sockets.splice(0).forEach((socket) => socket.close()),
  };
}

/** New namespaces. With a display, its IPC namespace is entered first, and its user namespace where the service is not root. */
function namespaces(display: number | undefined): string[] {
  const asRoot = process.getuid?.() === 0;
  const unshare = ['unshare', '--net', '--mount'];
  if (display === undefined) return asRoot ? unshare : [...unshare, '--user', '--map-root-user'];
  const user = asRoot ? [] : ['--user', '--preserve-credentials'];
  return ['nsenter', '--target', String(display), '--ipc', ...user, '--', ...unshare];
}

/** For machines without sandboxes: a session has only a separate process group and directory. */
export async function unsandboxed(dir: string, owner: Owner): Promise<Place> {
  const asRoot = process.getuid?.() === 0;
  const run = join(dir, 'run');
  const server = net.createServer();
  await new Promise<void>((resolve, reject) => void server.once('error', reject).listen(0, '127.0.0.1', resolve));
  const address = server.address();

  return {
    userData: join(dir, 'home/user-data'),
    extensions: join(dir, 'extensions'),
    gatewayPort: typeof address === 'object' && address !== null ? address.port : 0,

    start(command) {
      const child = spawn('sh', ['-c', UNSANDBOXED_SCRIPT, 'corral', ...command], {
        stdio: andNoOther('pipe', 'ignore', 'pipe', 'pipe', 'pipe'),
        detached: true,
        cwd: '/',
        env: { ...environment, HOME: join(dir, 'home'), USER: owner.name, TMPDIR: run, XDG_RUNTIME_DIR: run },
        ...(asRoot ? { uid: owner.uid, gid: owner.gid } : {}),
      });
      return {
        child,
        egress: Promise.resolve(() => server),
        listeners: Promise.resolve([]), // there is no namespace to have listeners
        init: Promise.resolve(undefined),
        ...pipes(child),
        go: (display) => letGo(child, display),
      };
    },

    close: () => server.close(),
  };
}

function receiveSockets(
  child: ChildProcess,
  count: number,
  sockets: { close(): void }[],
): Promise<(() => net.Server)[]> {
  const received = new Promise<(() => net.Server)[]>((resolve, reject) => {
    const opened: (() => net.Server)[] = [];
    child.on('message', (_, handle) => {
      if (!isSocket(handle)) return reject(new Error('the network namespace handed over something else.'));
      sockets.push(handle);
      opened.push(() => {
        const server = net.createServer().listen(handle);
        sockets.splice(sockets.indexOf(handle), 1, server);
        return server;
      });
      if (opened.length < count) return;
      if (child.connected) child.disconnect();
      resolve(opened);
    });
    child.once('disconnect', () => reject(new Error('the network namespace handed over no socket.')));
    child.once('error', reject);
  });
  return handled(received);
}

/** Callers that await it get the error. Without callers it is ignored. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

/** The class of a bare handle is internal to Node. The service only listens on it and closes it. */
function isSocket(handle: unknown): handle is { close(): void } {
  return typeof handle === 'object' && handle !== null && 'close' in handle;
}

/** Bubblewrap writes `{"child-pid": 123, …}` once and closes the descriptor. */
export function readInit(child: ChildProcess, descriptor: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const info = child.stdio.at(descriptor);
    if (!(info instanceof Readable)) return resolve(undefined);
    let text = '';
    info.setEncoding('utf8').on('data', (part: string) => {
      text += part;
      const pid = /"child-pid": *(\d+)/.exec(text)?.[1];
      if (pid !== undefined) resolve(Number(pid));
    });
    info.on('error', () => {}).on('close', () => resolve(undefined));
    child.once('error', () => resolve(undefined));
  });
}

function pipes({ stdio: [, , , toCommand, fromCommand] }: ChildProcess): Pick<Process, 'toCommand' | 'fromCommand'> {
  if (!(toCommand instanceof Writable) || !(fromCommand instanceof Readable)) throw new Error('spawned without pipes');
  return { toCommand, fromCommand };
}

/** The process exits if the display fails to start. */
export function letGo(child: ChildProcess, display: Promise<string> = Promise.resolve('')) {
  const { stdin } = child;
  stdin?.on('error', () => {}); // it died while it waited; `exit` reports it
  stdin?.write('go\n');
  display.then(
    (name) => stdin?.end(`${name}\n`),
    () => stdin?.end(),
  );
}

import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { closeSync, constants, mkdtempSync, openSync, rmSync } from 'node:fs';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Real pipes for the output of a process. Node gives its children sockets, which cannot be opened by name: `echo x >/dev/stdout` and
 * every program that logs to /dev/stderr would fail. A fifo that is unlinked once both ends are open is a pipe.
 */
interface Pipe {
  /** The child's end. */
  readonly write: number;
  readonly read: Socket;
  /** Closes this process's copy of the write end, which the child has now; while it is open the reader sees no end. */
  handedOver(): void;
}

const BATCH = 8;
const ready: { read: number; write: number }[] = [];
let making: Promise<void> | undefined;

/** Undefined if fifos cannot be created: the child then gets sockets. */
export async function outputs(): Promise<{ stdout: Pipe; stderr: Pipe } | undefined> {
  try {
    return { stdout: await pipe(), stderr: await pipe() };
  } catch {
    return undefined;
  }
}

async function pipe(): Promise<Pipe> {
  while (ready.length === 0) await (making ??= make());
  const { read, write } = ready.pop()!;
  if (ready.length < BATCH / 2) (making ??= make()).catch(() => {});
  let open = true;
  const socket = new Socket({ fd: read, readable: true, writable: false });
  socket.on('error', () => {});
  return {
    write,
    read: socket,
    handedOver() {
      if (open) closeSync(write);
      open = false;
    },
  };
}

/** Several at a time, ahead of need: Node has no call for fifos, so a program is run. */
async function make(): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), '.corral-'));
  try {
    const names = Array.from({ length: BATCH }, () => join(dir, randomBytes(6).toString('hex')));
    await new Promise<void>((resolve, reject) =>
      execFile('mkfifo', ['-m', '600', ...names], (error) => (error ? reject(error) : resolve())),
    );
    for (const name of names) {
      const read = openSync(name, constants.O_RDONLY | constants.O_NONBLOCK);
      ready.push({ read, write: openSync(name, constants.O_WRONLY) });
    }
  } finally {
    making = undefined;
    rmSync(dir, { recursive: true, force: true });
  }
}

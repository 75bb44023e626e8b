import type { Static } from 'typebox';
import { Refusal, type Guest } from '../../chromium/guest/guest.ts';
import {
  Begun,
  Ended,
  Exited,
  MOST_KEPT,
  OutputItem,
  OutputOpened,
  Spawned,
  type Args,
  type ProcessStatus,
  type Said,
} from '../../chromium/guest/protocol.ts';
import { errors } from '../../errors.ts';
import { jsonStringParts } from '../../lib/json-parts.ts';
import { memoryShare } from '../../lib/memory-share.ts';
import { bytesFrom, checked, inside, nextOf } from '../inside.ts';
import type { Hold } from '../holds.ts';
import { loseTail, rememberProcess, takeTail } from './tails.ts';
import type { ExecRequest, SpawnRequest, SpawnResult } from './schema.ts';

/** The most bytes of each output in the error about a command that took too long. */
const MOST_IN_DETAILS = 64 * 1024;
/** The most processes of one session that are known by id. A guest forgets the oldest of a thousand that have ended. */
const MOST_KNOWN = 10_000;
/** The exit code of a process that ended with its guest. */
const KILLED = 137;

/** The exit codes of processes of a lost guest. They stay readable for as long as the browser that the processes ran next to. */
const known = new WeakMap<Guest, Map<string, number | undefined>>();

const processesOf = (guest: Guest) => {
  const those = known.get(guest) ?? new Map<string, number | undefined>();
  known.set(guest, those);
  return those;
};

/** Runs a command and answers when it has ended, with an `ExecResult` as JSON in parts. A client that hangs up ends the command. */
export function exec({ engine }: Hold, request: ExecRequest, hungUp: AbortSignal): Promise<Buffer[]> {
  const { guest } = engine;
  return inside(async () => {
    const stream = await guest.open('exec', { ...commandOf(request), most: MOST_KEPT }, hungUp);
    const room = memoryShare(engine.memory, () => stream.reset(), hungUp);
    let started: number | undefined;
    try {
      stream.end();
      started = (await nextOf(guest, Begun, stream)).pid;
      guest.started.add(started);
      const ended = await nextOf(guest, Ended, stream);
      const output = await bytesFrom(guest, stream, ended.stdout_bytes + ended.stderr_bytes, room);
      const stdout = output.subarray(0, ended.stdout_bytes);
      const stderr = output.subarray(ended.stdout_bytes);
      if (ended.timed_out) {
        const details = [
          { code: 'stdout', message: stdout.subarray(-MOST_IN_DETAILS).toString() },
          { code: 'stderr', message: stderr.subarray(-MOST_IN_DETAILS).toString() },
        ];
        throw errors.process_timed_out({ seconds: request.timeout_sec ?? 0 }, { details });
      }
      const rest = {
        duration_ms: ended.duration_ms,
        ...(ended.stdout_dropped > 0 ? { stdout_dropped_bytes: ended.stdout_dropped } : {}),
        ...(ended.stderr_dropped > 0 ? { stderr_dropped_bytes: ended.stderr_dropped } : {}),
      };
      const parts: Buffer[] = [Buffer.from(`{"exit_code":${ended.exit_code}`)];
      for (const [name, bytes] of Object.entries({ stdout_b64: stdout, stderr_b64: stderr })) {
        parts.push(Buffer.from(`,"${name}":`));
        for await (const part of jsonStringParts(bytes, 'base64')) {
          parts.push(part);
          await room.add(part.length);
        }
      }
      return [...parts, Buffer.from(`,${JSON.stringify(rest).slice(1)}`)];
    } catch (error) {
      throw hungUp.aborted ? hungUp.reason : error;
    } finally {
      room.close();
      // If the guest died, its successor has to know which processes to kill.
      if (started !== undefined && !stream.gone.aborted) guest.started.delete(started);
      stream.reset();
    }
  });
}

/** Starts a process in the background. While it runs the session does not go to sleep. */
export function spawn(held: Hold, request: SpawnRequest): Promise<SpawnResult> {
  const { guest } = held.engine;
  return inside(async () => {
    const { allocate_tty = false, rows, cols } = request;
    if (!allocate_tty && (rows !== undefined || cols !== undefined))
      throw errors.invalid_input({
        detail: 'rows and cols are a terminal’s; send allocate_tty: true, or leave them out.',
      });
    const ask = { ...commandOf(request), allocate_tty, rows: rows ?? 24, cols: cols ?? 80 };
    const stream = await guest.open('spawn', ask);
    stream.end();
    const spawned = await nextOf(guest, Spawned, stream);
    const processes = processesOf(guest);
    const [oldest] = processes.keys();
    if (processes.size >= MOST_KNOWN && oldest !== undefined) processes.delete(oldest);
    processes.set(spawned.process_id, undefined);
    guest.started.add(spawned.pid);
    rememberProcess(guest, spawned.process_id, { command: request.command, pid: spawned.pid });
    const awake = held.stayAwake();
    void nextOf(guest, Exited, stream)
      .then(({ exit_code }) => {
        guest.started.delete(spawned.pid);
        return exit_code;
      })
      .catch(() => undefined)
      .then((code) => {
        if (processes.has(spawned.process_id)) processes.set(spawned.process_id, code ?? KILLED);
        return code === undefined ? loseTail(guest, spawned.process_id) : takeTail(guest, spawned.process_id);
      })
      .finally(() => {
        awake();
        stream.reset();
      });
    return spawned;
  });
}

export function status({ engine: { guest } }: Hold, id: string): Promise<Static<typeof ProcessStatus>> {
  return inside(async () => {
    const answer = await askAbout(guest, id, 'status', {});
    return answer ?? { state: 'exited', exit_code: KILLED, cpu_pct: 0, mem_bytes: 0 };
  });
}

export type { OutputItem };

interface Reading {
  tty: boolean;
  /** Undefined after the exit event. */
  next(): Promise<OutputItem | undefined>;
  close(): void;
}

/** The kept output of a process, then its output as it comes. */
export function read({ engine: { guest } }: Hold, id: string, hungUp?: AbortSignal): Promise<Reading> {
  return inside(async () => {
    if (!processesOf(guest).has(id)) throw errors.process_not_found({ id });
    const stream = await guest.open('output', { process_id: id }, hungUp);
    stream.end();
    const opened = await nextOf(guest, OutputOpened, stream).catch((error: Error) => unlessForgotten(guest, id, error));
    let over = false;
    return {
      tty: opened?.tty ?? false,
      async next() {
        if (over) return undefined;
        const item = opened && (await stream.next().catch(() => undefined));
        const event = item ? checked(guest, OutputItem, item.json) : gone();
        over = 'event' in event && event.event === 'exit';
        return event;
      },
      close: () => stream.reset(),
    };
  });
}

/** The process ended with its guest. */
const gone = (): OutputItem => ({ event: 'exit', exit_code: KILLED });

export function writeStdin({ engine: { guest } }: Hold, id: string, data_b64: string, eof: boolean) {
  return inside(async () => {
    const answer = await askAbout(guest, id, 'stdin', { data_b64, eof });
    if (answer === undefined) throw errors.process_exited({ detail: 'The process has exited.' });
    return answer;
  });
}

/** Signals the process and everything it started. Does nothing for a process that has exited. */
export function kill({ engine: { guest } }: Hold, id: string, signal: string): Promise<{ ok: true }> {
  return inside(async () => {
    await askAbout(guest, id, 'kill', { signal });
    return { ok: true };
  });
}

export function resize({ engine: { guest } }: Hold, id: string, rows: number, cols: number): Promise<{ ok: true }> {
  return inside(async () => {
    const answer = await askAbout(guest, id, 'resize', { rows, cols });
    if (answer === undefined) throw errors.process_exited({ detail: 'The process has exited.' });
    return { ok: true };
  });
}

/** Undefined when the process ended with its guest. */
async function askAbout<Q extends 'status' | 'stdin' | 'kill' | 'resize'>(
  guest: Guest,
  id: string,
  name: Q,
  args: Omit<Args<Q>, 'process_id'>,
): Promise<Said<Q> | undefined> {
  if (!processesOf(guest).has(id)) throw errors.process_not_found({ id });
  return guest
    .call(name, { process_id: id, ...args } as Args<Q>)
    .catch((error: Error) => unlessForgotten(guest, id, error));
}

function unlessForgotten(guest: Guest, id: string, error: Error): undefined {
  if (!(error instanceof Refusal) || error.code !== 'no_process') throw error;
  // A guest forgets the oldest of a thousand; a guest that died has forgotten all of them.
  if (processesOf(guest).get(id) !== KILLED) throw errors.process_not_found({ id });
}

function commandOf(request: ExecRequest) {
  const { command, args = [], cwd = null, env = {}, as_user = null, as_root = false, timeout_sec = null } = request;
  if (as_root && as_user !== null)
    throw errors.invalid_input({ detail: 'as_root and as_user exclude each other; send one of them.' });
  return { command, args, cwd, env, as_user, as_root, timeout_sec };
}

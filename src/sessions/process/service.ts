import { Type, type Static } from 'typebox';
import { Refusal, type Guest } from '../../chromium/guest/guest.ts';
import { errors } from '../../errors.ts';
import { bytesFrom, checked, inside, nextOf } from '../inside.ts';
import type { Hold } from '../live-session.ts';
import type { ExecRequest, ExecResult, SpawnRequest, SpawnResult } from './schema.ts';

/** Of each output of a command that is waited for. */
const MOST_KEPT = 8 * 1024 * 1024;
/** Of each, in the refusal of one that took too long. */
const MOST_IN_DETAILS = 64 * 1024;
/** Processes of one session that are known by their id. A guest forgets the oldest of a thousand that have ended. */
const MOST_KNOWN = 10_000;
/** What a process is said to have exited with that went with the guest. */
const KILLED = 137;

const count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const pid = Type.Integer({ minimum: 1, maximum: 2 ** 31 });
const exitCode = Type.Integer({ minimum: -1, maximum: 1024 });

/** What the guest says, as far as it is believed. */
const Begun = Type.Object({ pid });
const Ended = Type.Object({
  exit_code: exitCode,
  duration_ms: count,
  timed_out: Type.Boolean(),
  stdout_bytes: Type.Integer({ minimum: 0, maximum: MOST_KEPT }),
  stderr_bytes: Type.Integer({ minimum: 0, maximum: MOST_KEPT }),
  stdout_dropped: count,
  stderr_dropped: count,
});
const Spawned = Type.Object({
  process_id: Type.String({ pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' }),
  pid,
  started_at: Type.String({ maxLength: 40, pattern: '^[0-9T:.Z-]+$' }),
});
const Exited = Type.Object({ exit_code: exitCode });
const Status = Type.Object({
  state: Type.Union([Type.Literal('running'), Type.Literal('exited')]),
  exit_code: Type.Union([exitCode, Type.Null()]),
  cpu_pct: Type.Number({ minimum: 0, maximum: 1e6 }),
  mem_bytes: count,
});
const Output = Type.Union([
  Type.Object({ stream: Type.Union([Type.Literal('stdout'), Type.Literal('stderr')]), data_b64: Type.String() }),
  Type.Object({ event: Type.Literal('exit'), exit_code: exitCode }),
  Type.Object({ event: Type.Literal('dropped'), dropped_bytes: count }),
]);
const Opened = Type.Object({ tty: Type.Boolean() });
const Written = Type.Object({ written_bytes: count });

export type OutputItem = Static<typeof Output>;

/** How processes of a guest that is gone have ended. They stay readable for as long as the browser they ran beside. */
const known = new WeakMap<Guest, Map<string, number | undefined>>();

const processesOf = (guest: Guest) => {
  const those = known.get(guest) ?? new Map<string, number | undefined>();
  known.set(guest, those);
  return those;
};

/** Runs a command and answers when it has ended. Who hangs up ends it. */
export function exec({ engine: { guest } }: Hold, request: ExecRequest, hungUp: AbortSignal): Promise<ExecResult> {
  return inside(async () => {
    const stream = await guest.open('exec', { ...commandOf(request), most: MOST_KEPT }, hungUp);
    let started: number | undefined;
    try {
      stream.end();
      started = (await nextOf(guest, Begun, stream)).pid;
      guest.started.add(started);
      const ended = await nextOf(guest, Ended, stream);
      const output = await bytesFrom(guest, stream, ended.stdout_bytes + ended.stderr_bytes);
      const stdout = output.subarray(0, ended.stdout_bytes);
      const stderr = output.subarray(ended.stdout_bytes);
      if (ended.timed_out) {
        const details = [
          { code: 'stdout', message: stdout.subarray(-MOST_IN_DETAILS).toString() },
          { code: 'stderr', message: stderr.subarray(-MOST_IN_DETAILS).toString() },
        ];
        throw errors.process_timed_out({ seconds: request.timeout_sec ?? 0 }, { details });
      }
      return {
        exit_code: ended.exit_code,
        stdout_b64: stdout.toString('base64'),
        stderr_b64: stderr.toString('base64'),
        duration_ms: ended.duration_ms,
        ...(ended.stdout_dropped > 0 ? { stdout_dropped_bytes: ended.stdout_dropped } : {}),
        ...(ended.stderr_dropped > 0 ? { stderr_dropped_bytes: ended.stderr_dropped } : {}),
      };
    } catch (error) {
      throw hungUp.aborted ? hungUp.reason : error;
    } finally {
      // If the guest died, its successor has to know whom to bury.
      if (started !== undefined && !stream.gone.aborted) guest.started.delete(started);
      stream.reset();
    }
  });
}

/** Starts a process that goes on by itself. While it runs the session does not go to sleep. */
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
    const awake = held.stayAwake();
    void nextOf(guest, Exited, stream)
      .then(({ exit_code }) => {
        guest.started.delete(spawned.pid);
        return exit_code;
      })
      .catch(() => KILLED)
      .then((code) => processes.has(spawned.process_id) && processes.set(spawned.process_id, code))
      .finally(() => {
        awake();
        stream.reset();
      });
    return spawned;
  });
}

export function status({ engine: { guest } }: Hold, id: string): Promise<Static<typeof Status>> {
  return inside(async () => {
    const answer = await askAbout(guest, id, 'status', {});
    if (answer === undefined) return { state: 'exited', exit_code: KILLED, cpu_pct: 0, mem_bytes: 0 };
    return checked(guest, Status, answer);
  });
}

export interface Reading {
  tty: boolean;
  /** Undefined after the exit has been told. */
  next(): Promise<OutputItem | undefined>;
  close(): void;
}

/** Everything a process printed, as far as it is kept, and everything it prints from now on. */
export function read({ engine: { guest } }: Hold, id: string): Promise<Reading> {
  return inside(async () => {
    if (!processesOf(guest).has(id)) throw errors.process_not_found({ id });
    const stream = await guest.open('output', { process_id: id });
    stream.end();
    const opened = await nextOf(guest, Opened, stream).catch((error: Error) => unlessForgotten(guest, id, error));
    let over = false;
    return {
      tty: opened?.tty ?? false,
      async next() {
        if (over) return undefined;
        const item = opened && (await stream.next().catch(() => undefined));
        const event = item ? checked(guest, Output, item.json) : gone();
        over = 'event' in event && event.event === 'exit';
        return event;
      },
      close: () => stream.reset(),
    };
  });
}

/** With the guest went the process. */
const gone = (): OutputItem => ({ event: 'exit', exit_code: KILLED });

export function writeStdin({ engine: { guest } }: Hold, id: string, data_b64: string, eof: boolean) {
  return inside(async () => {
    const answer = await askAbout(guest, id, 'stdin', { data_b64, eof });
    if (answer === undefined) throw errors.process_exited({ detail: 'The process has exited.' });
    return checked(guest, Written, answer);
  });
}

/** Signals the process and everything it started. One that has exited has nothing to be told. */
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

/** Undefined when the process went with a guest that is gone. */
async function askAbout(guest: Guest, id: string, name: string, args: object): Promise<unknown> {
  if (!processesOf(guest).has(id)) throw errors.process_not_found({ id });
  return guest.call(name, { process_id: id, ...args }).catch((error: Error) => unlessForgotten(guest, id, error));
}

function unlessForgotten(guest: Guest, id: string, error: Error): undefined {
  if (!(error instanceof Refusal) || error.code !== 'no_process') throw error;
  // A guest forgets the oldest of a thousand; one that died has forgotten all.
  if (processesOf(guest).get(id) !== KILLED) throw errors.process_not_found({ id });
}

function commandOf(request: ExecRequest) {
  const { command, args = [], cwd = null, env = {}, as_user = null, as_root = false, timeout_sec = null } = request;
  if (as_root && as_user !== null)
    throw errors.invalid_input({ detail: 'as_root and as_user exclude each other; send one of them.' });
  return { command, args, cwd, env, as_user, as_root, timeout_sec };
}

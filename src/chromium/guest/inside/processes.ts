import { spawn as startProcess, type ChildProcess, type StdioOptions } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readSync } from 'node:fs';
import { constants } from 'node:os';
import type { Readable } from 'node:stream';
import type { IPty } from '@lydell/node-pty';
import type { Args } from '../protocol.ts';
import { runnable } from './command.ts';
import { Fault } from './fault.ts';
import type { Telling } from './answer-stream.ts';
import { Output } from './output.ts';
import { outputs } from './pipes.ts';
import { killTree, members, memoryOf, signalTree } from './tree.ts';

interface Process {
  readonly id: string;
  readonly pid: number;
  readonly output: Output;
  readonly pty: IPty | undefined;
  readonly child: ChildProcess | undefined;
  exitCode: number | null;
  measured: { at: number; ticks: Map<number, number> } | undefined;
  readonly startedAt: number;
}

/** Of more exited processes than this, the oldest are forgotten. */
const MOST_KEPT = 1000;
/** How long the output of an exited process is waited for, when its children keep the pipe open. */
const LINGER_MS = 250;
const MOST_STDIN = 1024 * 1024;
const MOST_TAIL = 4096; // TAIL_BYTES of protocol.ts, of which only types are loaded here
const TICKS_PER_SECOND = 100;

const processes = new Map<string, Process>();
const execs = new Set<number>();

export const processAsks = { exec, spawn, status, output, tail, stdin, kill, resize, bury };

async function exec(ask: Args<'exec'>, stream: Telling<'exec'>): Promise<void> {
  const { file, args, cwd, env } = runnable(ask);
  const began = performance.now();
  const { child, stdout: fromStdout, stderr: fromStderr } = await begin(file, args, { cwd, env }, 'ignore');
  const { pid } = child;
  const kept = { stdout: collect(fromStdout, ask.most), stderr: collect(fromStderr, ask.most) };
  const ending = new Promise<number>((resolve, reject) => {
    child.once('error', (error) =>
      reject(new Fault('not_started', `'${ask.command}' did not start: ${error.message}`)),
    );
    child.once('exit', (code, signal) => resolve(exitCode(code, signal)));
  });
  ending.catch(() => {}); // awaited below, after its process id is reported
  const closed = Promise.allSettled([endOf(fromStdout), endOf(fromStderr)]);
  if (pid !== undefined) execs.add(pid);
  let timedOut = false;
  const timer =
    ask.timeout_sec === null
      ? undefined
      : setTimeout(() => {
          timedOut = true;
          if (pid !== undefined) void killTree(pid);
        }, ask.timeout_sec * 1000);
  const hungUp = () => void (pid !== undefined && killTree(pid));
  stream.gone.addEventListener('abort', hungUp, { once: true });
  try {
    if (pid !== undefined) await stream.json({ pid });
    const code = await ending;
    // Remaining children may keep the pipes open for any time; the answer does not wait for that.
    await Promise.race([closed, new Promise((resolve) => setTimeout(resolve, LINGER_MS))]);
    for (const pipe of [fromStdout, fromStderr]) pipe.destroy();
    const [stdout, stderr] = [kept.stdout(), kept.stderr()];
    await stream.json({
      exit_code: code,
      duration_ms: Math.round(performance.now() - began),
      timed_out: timedOut,
      stdout_bytes: stdout.bytes.length,
      stderr_bytes: stderr.bytes.length,
      stdout_dropped: stdout.dropped,
      stderr_dropped: stderr.dropped,
    });
    await stream.bytes(stdout.bytes);
    await stream.bytes(stderr.bytes);
  } finally {
    clearTimeout(timer);
    stream.gone.removeEventListener('abort', hungUp);
    if (pid !== undefined) execs.delete(pid);
  }
}

/** Starts a process in a kernel session (setsid) of its own, so that it can be found with all it starts. */
async function begin(
  file: string,
  args: string[],
  options: { cwd: string; env: Record<string, string> },
  stdin: 'ignore' | 'pipe',
): Promise<{ child: ChildProcess; stdout: Readable; stderr: Readable }> {
  const own = await outputs();
  const stdio: StdioOptions = [stdin, own?.stdout.write ?? 'pipe', own?.stderr.write ?? 'pipe'];
  try {
    const child = startProcess(file, args, { ...options, detached: true, stdio });
    for (const pipe of child.stdio) pipe?.on('error', () => {});
    return { child, stdout: own?.stdout.read ?? child.stdout!, stderr: own?.stderr.read ?? child.stderr! };
  } finally {
    own?.stdout.handedOver();
    own?.stderr.handedOver();
  }
}

const endOf = (pipe: Readable) => new Promise((resolve) => pipe.once('close', resolve));

/** The beginning of a pipe's output, and the number of bytes beyond it. */
function collect(pipe: NodeJS.ReadableStream, most: number) {
  const parts: Buffer[] = [];
  let size = 0;
  let dropped = 0;
  pipe.on('data', (part: Buffer) => {
    const fits = part.subarray(0, most - size);
    if (fits.length > 0) parts.push(fits);
    size += fits.length;
    dropped += part.length - fits.length;
  });
  pipe.on('error', () => {});
  return () => ({ bytes: Buffer.concat(parts), dropped });
}

async function spawn(ask: Args<'spawn'>, stream: Telling<'spawn'>): Promise<void> {
  const { file, args, cwd, env } = runnable(ask);
  const output = new Output();
  const started = ask.allocate_tty
    ? await onTerminal(file, args, { cwd, env, rows: ask.rows, cols: ask.cols }, output)
    : await onPipes(file, args, { cwd, env }, output);
  const process: Process = {
    id: randomUUID(),
    output,
    exitCode: null,
    measured: undefined,
    startedAt: Date.now(),
    ...started,
  };
  processes.set(process.id, process);
  const timer =
    ask.timeout_sec === null ? undefined : setTimeout(() => void killTree(process.pid), ask.timeout_sec * 1000);
  const ended = started.ending.then((code) => {
    clearTimeout(timer);
    process.exitCode = code;
    output.end();
    forgetOldest();
    return code;
  });
  ended.catch(() => {}); // awaited below, after its ids are reported
  await stream.json({
    process_id: process.id,
    pid: process.pid,
    started_at: new Date(process.startedAt).toISOString(),
  });
  await stream.json({ exit_code: await ended }); // the service keeps the session awake until then
}

interface Started {
  pid: number;
  child: ChildProcess | undefined;
  pty: IPty | undefined;
  ending: Promise<number>;
}

async function onPipes(
  file: string,
  args: string[],
  options: { cwd: string; env: Record<string, string> },
  output: Output,
): Promise<Started> {
  const { child, stdout, stderr } = await begin(file, args, options, 'pipe');
  stdout.on('data', (bytes: Buffer) => output.add('stdout', bytes));
  stderr.on('data', (bytes: Buffer) => output.add('stderr', bytes));
  const exited = new Promise<number>((resolve) =>
    child.once('exit', (code, signal) => resolve(exitCode(code, signal))),
  );
  const closed = Promise.allSettled([endOf(stdout), endOf(stderr)]);
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', (error) => reject(new Fault('not_started', `'${file}' did not start: ${error.message}`)));
  });
  const ending = exited.then(async (code) => {
    await Promise.race([closed, new Promise((resolve) => setTimeout(resolve, LINGER_MS))]);
    return code;
  });
  return { pid: child.pid!, child, pty: undefined, ending };
}

async function onTerminal(
  file: string,
  args: string[],
  { cwd, env, rows, cols }: { cwd: string; env: Record<string, string>; rows: number; cols: number },
  output: Output,
): Promise<Started> {
  const { default: terminal } = await import('@lydell/node-pty'); // most sessions never need one
  const name = env['TERM'] ?? 'xterm-256color';
  const pty = terminal.spawn(file, args, { name, cwd, env: { ...env, TERM: name }, rows, cols, encoding: null });
  pty.onData((data) => output.add('stdout', Buffer.from(data)));
  // The package's types have neither.
  const { on, fd } = pty as unknown as { on(event: 'end', listener: () => void): void; fd: number };
  on.call(pty, 'end', () => readRest(fd, output));
  const ending = new Promise<number>((resolve) =>
    pty.onExit(({ exitCode, signal }) => resolve(signal ? 128 + signal : exitCode)),
  );
  return { pid: pty.pid, child: undefined, pty, ending };
}

/**
 * A terminal gives no more than 4 KiB to a read. libuv takes a read that did not fill its buffer for the last one, if the program has exited
 * by then, and ends the stream. What the kernel still holds (some 12 KiB at most) is read here, while the stream has not been closed.
 */
function readRest(fd: number, output: Output) {
  for (let reads = 0; reads < 64; reads++) {
    const bytes = Buffer.alloc(4096);
    try {
      const read = readSync(fd, bytes); // it does not block
      if (read === 0) return;
      output.add('stdout', bytes.subarray(0, read));
    } catch {
      return; // EIO: that was all. EAGAIN: another process has opened the terminal again
    }
  }
}

async function status({ process_id }: Args<'status'>, stream: Telling<'status'>): Promise<void> {
  const process = find(process_id);
  const running = process.exitCode === null;
  const those = running ? members(process.pid) : [];
  await stream.json({
    state: running ? 'running' : 'exited',
    exit_code: process.exitCode,
    cpu_pct: running ? cpu(process, those) : 0,
    mem_bytes: memoryOf(those),
  });
}

/** CPU use since the last request; for the first request, or one long after the last, since the process began. */
function cpu(process: Process, those: { pid: number; ticks: number }[]): number {
  const now = Date.now();
  const before = process.measured && now - process.measured.at < 60_000 ? process.measured : undefined;
  const since = before?.at ?? process.startedAt;
  const ticks = those.reduce((sum, one) => sum + Math.max(0, one.ticks - (before?.ticks.get(one.pid) ?? 0)), 0);
  // For requests in quick succession the interval is too short to measure: the older measurement stays.
  if (!before || now - before.at >= 100)
    process.measured = { at: now, ticks: new Map(those.map((one) => [one.pid, one.ticks])) };
  const seconds = Math.max(now - since, 10) / 1000;
  return Math.round((ticks / TICKS_PER_SECOND / seconds) * 1000) / 10;
}

/** The kept output from the beginning, then new output as it comes, then the exit. */
async function output({ process_id }: Args<'output'>, stream: Telling<'output'>): Promise<void> {
  const process = find(process_id);
  const { output } = process;
  await stream.json({ tty: process.pty !== undefined });
  let position = 0;
  while (!stream.gone.aborted) {
    if (position < output.droppedBytes) {
      const dropped_bytes = output.droppedBytes - position;
      position = output.droppedBytes;
      await stream.json({ event: 'dropped', dropped_bytes });
      continue; // more may have been dropped meanwhile
    }
    const chunk = output.from(position);
    if (chunk) {
      position += chunk.bytes.length;
      await stream.json({ stream: chunk.stream, data_b64: chunk.bytes.toString('base64') });
    } else if (output.ended) {
      return stream.json({ event: 'exit', exit_code: process.exitCode! }); // the exit code is known before the output ends
    } else await output.more(stream.gone);
  }
}

async function tail({ process_id }: Args<'tail'>, stream: Telling<'tail'>): Promise<void> {
  const { output, exitCode } = find(process_id);
  await stream.json({ tail_b64: output.tail(MOST_TAIL).toString('base64'), exit_code: exitCode });
}

async function stdin({ process_id, data_b64, eof }: Args<'stdin'>, stream: Telling<'stdin'>): Promise<void> {
  const process = find(process_id);
  if (process.exitCode !== null) throw new Fault('exited', 'The process has exited.');
  const data = Buffer.from(data_b64, 'base64');
  const { pty, child } = process;
  if (pty)
    pty.write(data as unknown as string); // accepts both, unlike its types
  else if (!child?.stdin || child.stdin.writableEnded || child.stdin.destroyed) {
    throw new Fault('stdin_closed', 'The stdin of the process is closed.');
  } else {
    if (child.stdin.writableLength > MOST_STDIN) throw new Fault('stdin_full', 'The process does not read its stdin.');
    if (data.length > 0) child.stdin.write(data);
  }
  if (eof) {
    if (pty) pty.write('\u0004');
    else child?.stdin?.end();
  }
  await stream.json({ written_bytes: data.length });
}

async function kill({ process_id, signal }: Args<'kill'>, stream: Telling<'kill'>): Promise<void> {
  const process = find(process_id);
  const name = `SIG${signal}` as NodeJS.Signals;
  if (name === 'SIGKILL') await killTree(process.pid);
  else signalTree(process.pid, name);
  await stream.json({ ok: true });
}

async function resize({ process_id, rows, cols }: Args<'resize'>, stream: Telling<'resize'>): Promise<void> {
  const { pty, exitCode } = find(process_id);
  if (!pty) throw new Fault('no_tty', 'The process has no terminal; spawn it with allocate_tty: true.');
  if (exitCode !== null) throw new Fault('exited', 'The process has exited.');
  pty.resize(cols, rows);
  await stream.json({ ok: true });
}

/** Kills the processes of an earlier guest. */
async function bury({ pids }: Args<'bury'>, stream: Telling<'bury'>): Promise<void> {
  await Promise.all(pids.map((pid) => killTree(pid)));
  await stream.json({ ok: true });
}

export function killEverything() {
  for (const pid of [...execs, ...[...processes.values()].filter((one) => one.exitCode === null).map((one) => one.pid)])
    signalTree(pid, 'SIGKILL');
}

function find(id: string): Process {
  const found = processes.get(id);
  if (!found) throw new Fault('no_process', `No process of this session has the id '${id}'.`);
  return found;
}

function forgetOldest() {
  if (processes.size <= MOST_KEPT) return;
  const oldest = [...processes.values()].find(({ exitCode }) => exitCode !== null);
  if (!oldest) return;
  processes.delete(oldest.id);
  oldest.output.forget();
}

function exitCode(code: number | null, signal: NodeJS.Signals | null): number {
  return code ?? 128 + (signal ? constants.signals[signal] : 0);
}

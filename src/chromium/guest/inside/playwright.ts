import { spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { Duplex } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { Channel } from '../channel.ts';
import type { Args } from '../protocol.ts';
import { Fault } from './fault.ts';
import { relay } from './relay.ts';
import type { Telling } from './answer-stream.ts';
import { killTree } from './tree.ts';

export const playwrightAsks = { execute };

/** The most bytes of each output of a run. */
const MOST_PRINTED = 1024 * 1024;
const MOST_RESULT = 8 * 1024 * 1024;
/** The most characters of an error, and of its stack. */
const MOST_SAID = 65_536;
/** How long the rest of a run's output is waited for, when other output comes in between. */
const LINGER_MS = 250;

interface Outcome {
  success: boolean;
  /** JSON. */
  result?: string;
  error?: string;
  stack?: string;
  /** The runner cannot be used again. */
  spent?: boolean;
}

interface Runner {
  child: ChildProcess;
  /** Receives the runner's output. */
  onPrint: ((stream: 'stdout' | 'stderr', bytes: Buffer) => void) | undefined;
  onOutcome: ((outcome: Outcome) => void) | undefined;
  over: boolean;
}

/** Runs take turns: they share the page. */
let turn = Promise.resolve();
let warm: Runner | undefined;

function execute(ask: Args<'execute'>, stream: Telling<'execute'>, service: Channel): Promise<void> {
  const run = turn.then(() => (stream.gone.aborted ? undefined : one(ask, stream, service)));
  turn = run.then(
    () => {},
    () => {},
  );
  return run;
}

async function one(
  { code, timeout_sec }: Args<'execute'>,
  stream: Telling<'execute'>,
  service: Channel,
): Promise<void> {
  const runner = (warm ??= start(service));
  const mark = randomBytes(16).toString('hex');
  const printed = { stdout: new Printed(mark), stderr: new Printed(mark) };
  runner.onPrint = (from, bytes) => printed[from].add(bytes);

  let timer: NodeJS.Timeout | undefined;
  const giveUp = () => void end(runner);
  stream.gone.addEventListener('abort', giveUp, { once: true });
  const outcome = await new Promise<Outcome>((resolve) => {
    runner.onOutcome = resolve;
    timer = setTimeout(() => {
      resolve({
        success: false,
        error: `The code did not end within ${timeout_sec} s (timeout_sec), and was stopped.`,
      });
      giveUp();
    }, timeout_sec * 1000);
    runner.child.send({ code, mark }, (error) => error && resolve(broken(runner)));
  });
  clearTimeout(timer);
  if (outcome.spent && warm === runner) warm = undefined;
  stream.gone.removeEventListener('abort', giveUp);
  const whole = Promise.all([printed.stdout.whole, printed.stderr.whole]);
  await Promise.race([whole, new Promise((resolve) => setTimeout(resolve, runner.over ? 50 : LINGER_MS))]);
  runner.onPrint = runner.onOutcome = undefined;

  const result = Buffer.from(outcome.result ?? 'null');
  const fits = result.length <= MOST_RESULT;
  const stack = outcome.stack === undefined ? '' : `${outcome.stack.slice(0, MOST_SAID)}\n`;
  const stderr = Buffer.concat([printed.stderr.bytes(), Buffer.from(stack)]);
  const error = fits ? outcome.error : `The result has ${result.length} bytes, and ${MOST_RESULT} are the most.`;
  await stream.json({
    success: outcome.success && fits,
    ...(error === undefined ? {} : { error: error.slice(0, MOST_SAID) }),
  });
  for (const part of [fits ? result : Buffer.from('null'), printed.stdout.bytes(), stderr]) {
    await stream.json({ bytes: part.length });
    await stream.bytes(part);
  }
}

function start(service: Channel): Runner {
  const file = fileURLToPath(new URL('runner.js', import.meta.url));
  const stdio = ['ignore', 'pipe', 'pipe', 'pipe', 'ipc'] as const;
  const child = spawn(process.execPath, [file], { stdio: [...stdio], detached: true });
  const runner: Runner = { child, onPrint: undefined, onOutcome: undefined, over: false };
  const [, , , cdp] = child.stdio;
  if (!(cdp instanceof Duplex)) throw new Fault('internal', 'The runner was started without a socket.');
  const stream = service.open('cdp');
  void relay(cdp, stream); // no other process in the session has such a socket
  child.stdout?.on('data', (bytes: Buffer) => runner.onPrint?.('stdout', bytes));
  child.stderr?.on('data', (bytes: Buffer) => runner.onPrint?.('stderr', bytes));
  child.on('message', (message) => runner.onOutcome?.(message as Outcome));
  child.on('error', () => {});
  child.once('exit', () => {
    runner.over = true;
    if (warm === runner) warm = undefined;
    stream.reset();
    runner.onOutcome?.(broken(runner));
  });
  return runner;
}

const broken = ({ child: { exitCode, signalCode } }: Runner): Outcome => ({
  success: false,
  error: `The code ended the process it ran in (${signalCode ?? `exit code ${exitCode}`}).`,
});

/** Ends the runner. The next run starts a new one. */
async function end(runner: Runner): Promise<void> {
  runner.over = true;
  if (warm === runner) warm = undefined;
  if (runner.child.pid !== undefined) await killTree(runner.child.pid);
}

/** One output of a run, up to the mark that the runner prints after it. */
class Printed {
  readonly whole: Promise<void>;
  readonly #mark: string;
  #text = Buffer.alloc(0);
  #dropped = 0;
  #tail = '';
  #resolve!: () => void;

  constructor(mark: string) {
    this.#mark = mark;
    this.whole = new Promise((resolve) => (this.#resolve = resolve));
  }

  add(bytes: Buffer) {
    const fits = bytes.subarray(0, MOST_PRINTED + this.#mark.length - this.#text.length);
    this.#text = Buffer.concat([this.#text, fits]);
    this.#dropped += bytes.length - fits.length;
    this.#tail = (this.#tail + bytes.toString('latin1')).slice(-this.#mark.length);
    if (this.#tail === this.#mark) this.#resolve();
  }

  bytes(): Buffer {
    const at = this.#text.lastIndexOf(this.#mark);
    const own = at === -1 ? this.#text : this.#text.subarray(0, at);
    if (this.#dropped <= this.#mark.length) return own;
    return Buffer.concat([own, Buffer.from(`\n[${this.#dropped} bytes more were dropped]\n`)]);
  }
}

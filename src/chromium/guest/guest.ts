import { spawn, type ChildProcess } from 'node:child_process';
import { Duplex } from 'node:stream';
import { Value } from 'typebox/value';
import { memory, type Group } from '../../lib/byte-budget.ts';
import { isLight } from '../../lib/json-weight.ts';
import type { Log } from '../../lib/log.ts';
import { sameOwner } from '../../lib/scope.ts';
import { loopPace } from '../../lib/turns.ts';
import { andNoOther } from '../sandbox/descriptors.ts';
import type { Browser } from '../browser/launch.ts';
import { logTail } from '../sandbox/log-tail.ts';
import { killTree } from '../sandbox/process-tree.ts';
import { channel, ChannelClosed, Refusal, type Channel, type Stream } from './channel.ts';
import { protocol, type Args, type Question, type Said } from './protocol.ts';
import type { Toolbox } from './toolbox.ts';

export { ChannelClosed, Refusal, type Stream } from './channel.ts';

/**
 * Performs requests inside a session: one small program in its sandbox, started when it is first needed and then kept. The session's own
 * processes run as the same user and may do anything to it, so its answers are not trusted: the caller checks what arrives on a stream
 * (protocol.ts). If the guest dies or breaks the protocol it is ended with all its processes; the next request starts a new one.
 */
export interface Guest {
  /** Opens a stream for a request; data flows both ways. The signal aborts it. */
  open<Q extends Question>(name: Q, args: Args<Q>, signal?: AbortSignal): Promise<Stream>;
  /** A request with a single immediate answer. An answer of the wrong shape ends the guest. */
  call<Q extends Question>(name: Q, args: Args<Q>, signal?: AbortSignal): Promise<Said<Q>>;
  /** Ends the guest because its answer was invalid. */
  distrust(what: string): void;
  /** The leaders of process trees that the guest started. If the guest dies first, its successor kills them. */
  readonly started: Set<number>;
  /** Ends the guest permanently: the session has ended. */
  close(): Promise<void>;
}

/** The guest cannot be started. */
export class NoGuest extends Error {
  override readonly name = 'NoGuest';
  readonly code: 'unsandboxed' | 'not_started';

  constructor(code: NoGuest['code'], message: string) {
    super(message);
    this.code = code;
  }
}

interface GuestOptions {
  browser: Browser;
  toolbox: Toolbox | undefined;
  /** Whether the guest may run without a sandbox. */
  allowUnsandboxed: boolean;
  /** The guest requests a connection to its browser. */
  onCdp: (stream: Stream) => void;
  /** A WebDriver inside the session connects to a port that looks like Chromium's own debugging port. */
  onDevtools: (stream: Stream) => void;
  log: Log;
  /** Counts requests that the guest has not read. */
  group?: Group;
  silenceMs?: number;
}

interface Running {
  channel: Channel;
  child: ChildProcess;
  /** A ping was sent and is not answered yet. */
  asked: boolean;
}

/** The most connections to the browser that the guest may have at once. */
const MOST_OF_ITS_OWN = 8;
/** The most such connections within ten seconds: each costs the browser a session. */
const MOST_IN_A_WHILE = 100;
/** The most requests at once. More could not run anyway: a running process is one of them, and each takes memory of the service. */
const MOST_ASKED = 4096;
const PATIENCE_MS = 2000;
/** Of one message: a part of a directory's list has 1000 files with 6 fields. */
const MOST_WEIGHT = 20_000;
/** The deadline of a call with one answer, such as removing a directory of hundreds of thousands of files. */
const CALL_MS = 120_000;
/** A guest that is silent for this long was stopped, or is stuck. */
const SILENCE_MS = 20_000;

export function guestOf({
  browser,
  toolbox,
  allowUnsandboxed,
  onCdp,
  onDevtools,
  log,
  group = memory.group(),
  silenceMs = SILENCE_MS,
}: GuestOptions): Guest {
  const started = new Set<number>();
  let running: Promise<Running> | undefined;
  const onItsBehalf = sameOwner(); // it outlives the request that needs it first
  let over = false;
  let connected: number[] = [];

  function mayConnect(): boolean {
    const now = performance.now();
    connected = connected.filter((at) => now - at < 10_000);
    return connected.push(now) <= MOST_IN_A_WHILE;
  }

  async function start(): Promise<Running> {
    if (!browser.confined && !allowUnsandboxed) {
      throw new NoGuest(
        'unsandboxed',
        'This machine does not support a sandbox, so processes and files in sessions are disabled.',
      );
    }
    const { tools } = browser;
    if (!toolbox || tools === undefined) throw new NoGuest('not_started', 'The browser was started without its tools.');
    await toolbox.ready;
    if (over) throw new ChannelClosed('The session is over.');
    const command = [toolbox.node(tools), `${tools}/guest/inside/main.js`];
    const more: Record<string, string> = browser.kind === 'headful' && browser.confined ? { DISPLAY: ':0' } : {};
    const { file, args, options } = browser.inside(command, more);
    const child = spawn(file, args, {
      ...options,
      detached: true,
      stdio: andNoOther('ignore', 'ignore', 'pipe', 'pipe'),
    });
    const words = logTail(child.stderr);
    child.on('error', () => {}); // its socket then closes, which is handled
    const socket = child.stdio[3];
    if (!(socket instanceof Duplex)) throw new NoGuest('not_started', 'The guest was started without a socket.');
    if (child.pid !== undefined) browser.adopt(child.pid);
    const share = memory.share(group, 'sender', () => {});
    share.hold(true); // the guest keeps it, which is ended when it does not answer
    const made: Running = {
      child,
      asked: false,
      channel: channel(socket, {
        host: true,
        most: MOST_OF_ITS_OWN,
        pace: loopPace,
        share,
        isLight: (json) => isLight(json, MOST_WEIGHT),
        onOpen(name, _args, stream) {
          const serve = name === 'cdp' ? onCdp : name === 'devtools' ? onDevtools : undefined;
          if (!serve) return made.channel.close('it asked for something that there is not.');
          if (!mayConnect()) return made.channel.close('too many connections to the browser were opened.');
          serve(stream);
        },
      }),
    };
    void made.channel.closed.then((reason) => {
      running = undefined;
      if (!over) log.warn({ reason, lastWords: words().slice(-5) }, 'guest.ended');
      void bury(child);
    });
    if (started.size > 0) {
      makeSure(made); // the guest may be stopped as soon as it runs
      const pids = [...started];
      started.clear();
      const late = setTimeout(() => made.channel.close('it does not end its processes.'), CALL_MS);
      await answer(made.channel.open('bury', { pids })).finally(() => clearTimeout(late));
    }
    return made;
  }

  /** Pings the guest: callers must not wait for an answer of a stopped one. */
  function makeSure(there: Running): void {
    if (there.asked) return;
    there.asked = true;
    const late = setTimeout(() => there.channel.close('it does not answer.'), silenceMs);
    answer(there.channel.open('ping', {}))
      .catch(() => {})
      .finally(() => {
        clearTimeout(late);
        there.asked = false;
      });
  }

  async function open<Q extends Question>(name: Q, args: Args<Q>, signal?: AbortSignal): Promise<Stream> {
    if (!Value.Check(protocol[name].args, args)) throw new TypeError(`A guest is not asked for '${name}' like that.`);
    if (over) throw new ChannelClosed('The session is over.');
    running ??= onItsBehalf(start).catch((error: Error) => {
      running = undefined;
      throw error;
    });
    const there = await running;
    const { channel } = there;
    signal?.throwIfAborted();
    makeSure(there);
    if (channel.count >= MOST_ASKED)
      throw new Refusal('busy', `The session has ${MOST_ASKED} concurrent requests, which is the maximum.`);
    const stream = await channel.ask(name, args, signal);
    if (signal) {
      const giveUp = () => stream.reset();
      if (signal.aborted) giveUp();
      signal.addEventListener('abort', giveUp, { once: true });
      stream.gone.addEventListener('abort', () => signal.removeEventListener('abort', giveUp), { once: true });
    }
    return stream;
  }

  function distrust(what: string): void {
    void running?.then(
      ({ channel }) => channel.close(what),
      () => {},
    );
  }

  return {
    started,
    open,
    distrust,

    async call(name, args, signal) {
      const stream = await open(name, args, signal);
      const late = setTimeout(() => stream.reset(), CALL_MS);
      try {
        const said = await answer(stream);
        if (fits(name, said)) return said;
        distrust('its answer does not have the expected shape.');
        throw new ChannelClosed('Its answer does not have the expected shape.');
      } finally {
        clearTimeout(late);
      }
    },

    async close() {
      over = true;
      const last = await running?.catch(() => undefined);
      if (!last) return;
      last.channel.close('the session is over.');
      await bury(last.child);
    },
  };
}

const fits = <Q extends Question>(name: Q, said: unknown): said is Said<Q> => Value.Check(protocol[name].says, said);

async function answer(stream: Stream): Promise<unknown> {
  stream.end();
  try {
    const item = await stream.next();
    return item?.json;
  } finally {
    stream.reset();
  }
}

/** The guest exits when its socket closes; if it does not do so in time, it is killed. */
async function bury(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const late = setTimeout(() => void killTree(child.pid!), PATIENCE_MS);
  await new Promise((resolve) => child.once('exit', resolve));
  clearTimeout(late);
}

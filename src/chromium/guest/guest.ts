import { spawn, type ChildProcess } from 'node:child_process';
import { Duplex } from 'node:stream';
import { Value } from 'typebox/value';
import type { Log } from '../../lib/log.ts';
import { andNoOther } from '../sandbox/descriptors.ts';
import type { Browser } from '../browser/launch.ts';
import { logTail } from '../sandbox/log-tail.ts';
import { killTree } from '../sandbox/process-tree.ts';
import { channel, ChannelClosed, Refusal, type Channel, type Stream } from './channel.ts';
import { protocol, type Args, type Question, type Said } from './protocol.ts';
import type { Toolbox } from './toolbox.ts';

export { ChannelClosed, Refusal, type Stream } from './channel.ts';

/**
 * What does things inside a session: one small program in its sandbox, started when it is first needed and kept from then
 * on. The session's own processes run as the same user and may do anything to it, so it is asked and never believed: what it
 * says on a stream is for the asker to check (protocol.ts). When it dies or talks nonsense it is ended, and everything it had started with it; whoever
 * asks next has a new one.
 */
export interface Guest {
  /** Asks for something; the stream carries what there is to say both ways. Aborted, it is given up. */
  open<Q extends Question>(name: Q, args: Args<Q>, signal?: AbortSignal): Promise<Stream>;
  /** Asks for one thing that is answered at once. An answer that does not fit is the guest's end. */
  call<Q extends Question>(name: Q, args: Args<Q>, signal?: AbortSignal): Promise<Said<Q>>;
  /** It said what it should not have. */
  distrust(what: string): void;
  /** The first process of something it started: buried by its successor, should it die first. */
  readonly started: Set<number>;
  /** Ends it. For good: the session is over. */
  close(): Promise<void>;
}

/** There is no guest to be had. */
export class NoGuest extends Error {
  override readonly name = 'NoGuest';
  readonly code: 'unsandboxed' | 'not_started';

  constructor(code: NoGuest['code'], message: string) {
    super(message);
    this.code = code;
  }
}

export interface GuestOptions {
  browser: Browser;
  toolbox: Toolbox | undefined;
  /** Whether it may run where there is no sandbox. */
  allowUnsandboxed: boolean;
  /** It asks for a connection to the browser it lives beside. */
  onCdp: (stream: Stream) => void;
  log: Log;
  silenceMs?: number;
}

interface Running {
  channel: Channel;
  child: ChildProcess;
  /** It was asked whether it is there, and has not answered yet. */
  asked: boolean;
}

/** Connections to the browser that it may have at once. */
const MOST_OF_ITS_OWN = 4;
/** And within ten seconds: each costs the browser a session. */
const MOST_IN_A_WHILE = 100;
/** What is asked of it at once. More cannot run either: a process is one of these, and each takes memory here. */
const MOST_ASKED = 4096;
const PATIENCE_MS = 2000;
/** For one thing that is answered at once, such as removing a directory of hundreds of thousands of files. */
const CALL_MS = 120_000;
/** Who says nothing for so long was stopped by somebody, or is stuck. */
const SILENCE_MS = 20_000;

export function guestOf({
  browser,
  toolbox,
  allowUnsandboxed,
  onCdp,
  log,
  silenceMs = SILENCE_MS,
}: GuestOptions): Guest {
  const started = new Set<number>();
  let running: Promise<Running> | undefined;
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
        'This machine gives sessions no sandbox, and without one they get no processes and files.',
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
    child.on('error', () => {}); // its socket closes then, which says all
    const socket = child.stdio[3];
    if (!(socket instanceof Duplex)) throw new NoGuest('not_started', 'The guest was started without a socket.');
    if (child.pid !== undefined) browser.adopt(child.pid);
    const made: Running = {
      child,
      asked: false,
      channel: channel(socket, {
        host: true,
        most: MOST_OF_ITS_OWN,
        onOpen(name, _args, stream) {
          if (name !== 'cdp') return made.channel.close('it asked for something that there is not.');
          if (!mayConnect()) return made.channel.close('too many connections to the browser were opened.');
          onCdp(stream);
        },
      }),
    };
    void made.channel.closed.then((reason) => {
      running = undefined;
      if (!over) log.warn({ reason, lastWords: words().slice(-5) }, 'guest.ended');
      void bury(child);
    });
    if (started.size > 0) {
      makeSure(made); // it may be stopped as soon as it is there
      const pids = [...started];
      started.clear();
      const late = setTimeout(() => made.channel.close('it does not bury what was started.'), CALL_MS);
      await answer(made.channel.open('bury', { pids })).finally(() => clearTimeout(late));
    }
    return made;
  }

  /** Whoever waits for an answer must not wait for one who was stopped. */
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

  /** Its end is the end of its socket; who does not see it in time is killed. */
  async function bury(child: ChildProcess): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
    const late = setTimeout(() => void killTree(child.pid!), PATIENCE_MS);
    await new Promise((resolve) => child.once('exit', resolve));
    clearTimeout(late);
  }

  async function open<Q extends Question>(name: Q, args: Args<Q>, signal?: AbortSignal): Promise<Stream> {
    if (!Value.Check(protocol[name].args, args)) throw new TypeError(`A guest is not asked for '${name}' like that.`);
    if (over) throw new ChannelClosed('The session is over.');
    running ??= start().catch((error: Error) => {
      running = undefined;
      throw error;
    });
    const there = await running;
    const { channel } = there;
    signal?.throwIfAborted();
    makeSure(there);
    if (channel.count >= MOST_ASKED)
      throw new Refusal('not_started', `The session is asked for ${MOST_ASKED} things at once, which is the most.`);
    const stream = channel.open(name, args);
    if (signal) {
      const giveUp = () => stream.reset();
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
        distrust('it said something that does not fit.');
        throw new ChannelClosed('It said something that does not fit.');
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

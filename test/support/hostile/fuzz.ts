import net from 'node:net';
import { Duplex, PassThrough } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { attachBidi, isMapperFault } from '../../../src/chromium/bidi/bidi.ts';
import { requestThrough } from '../../../src/chromium/pages/browser-request.ts';
import { connectDisplay } from '../../../src/chromium/computer/display-client.ts';
import { attachDisplay } from '../../../src/chromium/display/display-view.ts';
import { engineOf, type Engine } from '../../../src/chromium/engine.ts';
import { channel } from '../../../src/chromium/guest/channel.ts';
import type { Browser } from '../../../src/chromium/browser/launch.ts';
import { framesOf } from '../../../src/chromium/recorder/frames.ts';
import { resizeDisplay } from '../../../src/chromium/display/rfb.ts';
import { attachScreencast } from '../../../src/chromium/pages/screencast.ts';
import { memory } from '../../../src/lib/byte-budget.ts';
import { silent } from '../../../src/lib/log.ts';
import type { WebSocketSink } from '../../../src/lib/ws-sink.ts';
import { seededRandom, trickyText, type Random } from '../random.ts';
import { hostileBrowser } from './browser.ts';
import { hostileDisplay } from './display.ts';

export interface FuzzOptions {
  seed: number;
  messages: number;
  say?: (line: string) => void;
}

export interface FuzzReport {
  messages: number;
  rounds: number;
  /** What must not happen, in sentences. */
  faults: string[];
  /** Rejections that the BiDi mapper let fall; the service drops them by where they come from. */
  mapperFaults: number;
}

const ANSWER_MS = 40;
/** Of one round; then the session ends, and everything that waits has to. */
const ROUND_MESSAGES = 10_000;
const ROUND_MS = 4000;
/** Longer than the longest deadline that is not injected. */
const HANG_MS = 40_000;

/**
 * Drives everything of the service that hears a browser, a display or a guest, with ones that answer with wrong shapes, wrong
 * ids, huge lengths, halves and silence. The same seed gives the same messages; their order depends on the machine.
 */
export async function fuzz({ seed, messages, say = () => {} }: FuzzOptions): Promise<FuzzReport> {
  const faults: string[] = [];
  let mapperFaults = 0;
  const unhandled = (kind: string) => (error: unknown) => {
    if (kind === 'rejection' && isMapperFault(error)) mapperFaults += 1;
    else faults.push(`An unhandled ${kind}: ${error instanceof Error ? error.stack : String(error)}`);
  };
  process.on('unhandledRejection', unhandled('rejection'));
  process.on('uncaughtException', unhandled('exception'));

  let said = 0;
  let rounds = 0;
  let first: number | undefined;
  const random = seededRandom(seed);
  while (said < messages && faults.length === 0) {
    said += await round(random, rounds, faults);
    rounds += 1;
    if (rounds === 5) first = inUse();
    if (rounds % 10 === 0) say(`${said} messages in ${rounds} rounds, ${Math.round(inUse() / 1e6)} MB in use`);
  }
  await sleep(ANSWER_MS * 4);
  if (first !== undefined && inUse() - first > 96e6) faults.push(`Memory grew from ${first} to ${inUse()} bytes.`);
  if (memory.used > 0) faults.push(`${memory.used} bytes of the budget were never given back.`);
  return { messages: said, rounds, faults, mapperFaults };
}

function inUse(): number {
  (globalThis as { gc?: () => void }).gc?.();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

async function round(random: Random, number: number, faults: string[]): Promise<number> {
  const hostile = hostileBrowser(random);
  const display = hostileDisplay(random);
  const headful = number % 3 === 0;
  let exited!: (ending: { code: number; signal: null }) => void;
  const browser = {
    engine: headful ? 'headful' : 'headless-shell',
    version: { product: 'x', protocolVersion: '1', userAgent: '', revision: '', jsVersion: '' },
    toBrowser: hostile.toBrowser,
    fromBrowser: hostile.fromBrowser,
    egress: net.createServer(),
    connectDisplay: headful ? display.connect : undefined,
    extensions: '/extensions',
    init: undefined,
    exited: new Promise((resolve) => (exited = resolve)),
    logTail: () => [],
    freeze: async () => {},
    thaw: async () => {},
    memory: async () => 0,
    confined: true,
    keepDownload: async () => undefined,
    missingFile: async () => undefined,
    tools: undefined,
    inside: () => ({ file: 'false', args: [], options: {} }),
    adopt() {},
    refreshRate: () => undefined,
    setRefreshRate: async () => {},
    stop: async () => exited({ code: 0, signal: null }),
  } as unknown as Browser;
  const engine = engineOf(browser, {
    allow: { allows: () => true } as never,
    log: silent,
    whenGone: () => ({ code: 1011, reason: 'gone' }),
    answerMs: ANSWER_MS,
  });

  const running = new Map<string, number>();
  let over = false;
  let lastId = 0;
  async function again(name: string, work: () => Promise<unknown>): Promise<void> {
    while (!over) {
      const key = `${name}#${(lastId += 1)}`;
      running.set(key, performance.now());
      await work().catch(() => {});
      running.delete(key);
      await sleep(1);
    }
  }
  const verbs = Object.entries(verbsOf(engine, random, display)).map(([name, work]) => again(name, work));
  const chatter = (async () => {
    for (; !over; await sleep(1))
      for (let more = 60; more > 0; more--) {
        if (random(12) === 0) hostile.noise();
        else hostile.event();
      }
  })();

  const until = performance.now() + ROUND_MS;
  while (hostile.said + display.said < ROUND_MESSAGES && performance.now() < until && faults.length === 0)
    await sleep(5);
  over = true;
  await engine.close();
  display.close();
  hostile.fromBrowser.destroy();
  hostile.toBrowser.destroy();
  const late = new Promise((resolve) => setTimeout(resolve, HANG_MS, 'late').unref());
  if ((await Promise.race([Promise.all([...verbs, chatter]), late])) === 'late')
    faults.push(`These never ended: ${[...running.keys()].join(', ')}`);
  return hostile.said + display.said;
}

function verbsOf(engine: Engine, random: Random, display: ReturnType<typeof hostileDisplay>) {
  const { computer } = engine;
  const signal = () => AbortSignal.timeout(200);
  return {
    viewport: () => engine.setViewport({ width: 800, height: 600 }),
    open: () => engine.open('http://a.test/'),
    state: async () => engine.resume(await engine.state()),
    extension: async () => engine.unloadExtension(await engine.loadExtension('x')),
    clipboard: async () => {
      await computer.clipboard.write('a');
      await computer.clipboard.read();
    },
    screenshot: () => computer.screenshot(random(2) ? undefined : { x: 0, y: 0, width: 10, height: 10 }),
    hands: () => computer.act([{ type: 'type', text: 'aé', delayMs: 0 }], signal()),
    request: async () => {
      const { body } = await requestThrough(
        engine.hidden,
        { url: 'http://a.test/', method: 'POST', headers: [['a', 'b']], body: Buffer.from('x') },
        signal(),
      );
      for await (const _ of body) continue;
    },
    frames: async () => {
      const frames = await framesOf(engine);
      frames.start(
        () => frames.next(),
        () => {},
      );
      await sleep(20);
      frames.close();
    },
    client: () => rawClient(engine, random),
    bidi: () => bidiClient(engine, random),
    view: () => viewer(engine, random),
    display: async () => {
      const client = await connectDisplay(display.connect);
      client.follow(async () => client.next());
      const captured = client.capture().catch(() => {});
      await Promise.race([captured, sleep(50)]);
      client.close();
    },
    resize: () => resizeDisplay(display.connect, { width: 800, height: 600 }, signal()),
    displayView: async () => {
      const receiver = attachDisplay(display.connect, sink(), { readOnly: random(2) === 0 });
      for (let i = 0; i < 5; i++) receiver.receive(Buffer.from(Array.from({ length: random(40) }, () => random(256))));
      await sleep(10);
      receiver.closed();
    },
    guest: () => guest(random),
  };
}

function sink(): WebSocketSink {
  return {
    send() {},
    flush() {},
    sendBinary: (_pieces, written) => written?.(),
    bufferedAmount: 0,
    close() {},
    pause() {},
    resume() {},
  };
}

const METHODS = [
  'Target.getTargets',
  'Target.createTarget',
  'Target.setAutoAttach',
  'Runtime.evaluate',
  'Browser.getVersion',
];

async function rawClient(engine: Engine, random: Random): Promise<void> {
  const client = engine.mux.attach(sink());
  for (let id = 1; id <= 10; id++) {
    const method = METHODS[random(METHODS.length)];
    const text = random(8) === 0 ? trickyText(random) : JSON.stringify({ id, method, params: {} });
    client.receive(Buffer.from(text));
    client.flush();
    await sleep(1);
  }
  client.closed();
}

async function bidiClient(engine: Engine, random: Random): Promise<void> {
  const receiver = attachBidi(engine.mux, sink(), { newSessionMs: 100 });
  const commands: [string, object][] = [
    ['session.new', { capabilities: {} }],
    ['session.subscribe', { events: ['browsingContext', 'log', 'network', 'script'] }],
    ['browsingContext.getTree', {}],
    ['browsingContext.create', { type: 'tab' }],
    ['script.evaluate', { expression: '1', target: { context: 'x' }, awaitPromise: true }],
    ['storage.getCookies', {}],
  ];
  for (const [id, [method, params]] of commands.entries()) {
    receiver.receive(Buffer.from(random(10) === 0 ? trickyText(random) : JSON.stringify({ id, method, params })));
    await sleep(id === 0 ? 30 : 2);
  }
  receiver.closed();
}

async function viewer(engine: Engine, random: Random): Promise<void> {
  const receiver = attachScreencast(engine.mux, sink(), {
    readOnly: random(4) === 0,
    casts: engine.casts,
    log: silent,
  });
  const messages = [
    { type: 'ack' },
    { type: 'size', width: 100, height: 100 },
    { type: 'newTab' },
    { type: 'navigate', address: 'http://a.test' },
    { type: 'history', to: 'back' },
    { type: 'paste', text: 'x' },
    { type: 'copy', cut: false },
    { type: 'text', text: 'x' },
  ];
  for (let i = 0; i < 12; i++) {
    receiver.receive(Buffer.from(JSON.stringify(messages[random(messages.length)])));
    await sleep(2);
  }
  receiver.closed();
}

/** Frames of the guest's channel: kinds that are none, lengths that lie, JSON that is none. */
async function guest(random: Random): Promise<void> {
  const [up, down] = [new PassThrough(), new PassThrough()];
  const near = Duplex.from({ readable: up, writable: down });
  down.resume();
  const host = channel(near, { host: true, most: 4, onOpen: (_name, _args, stream) => stream.fail('no', 'no') });
  const stream = host.open('x');
  const reading = (async () => {
    while (await stream.next());
  })().catch(() => {});
  for (let i = 0; i < 5; i++) {
    const payload = Buffer.from(random(2) ? JSON.stringify(trickyText(random)) : trickyText(random));
    const head = Buffer.alloc(9);
    head.writeUInt32LE(random(6) === 0 ? random(2 ** 31) : 5 + payload.length, 0);
    head.writeUInt8(random(9), 4);
    head.writeUInt32LE(random(4), 5);
    up.write(Buffer.concat([head, payload]));
    await sleep(1);
  }
  host.close('over');
  await reading;
}

/** For a process of its own: exits with 1 when there were faults. */
export default async function main(options: { seed: number; messages: number }): Promise<void> {
  const started = performance.now();
  const report = await fuzz({ ...options, say: (line) => process.stdout.write(`${line}\n`) });
  const seconds = Math.round((performance.now() - started) / 1000);
  process.stdout.write(
    `seed ${options.seed}: ${report.messages} messages in ${report.rounds} rounds and ${seconds} s, ${report.mapperFaults} rejections of the mapper dropped, ${report.faults.length} faults\n`,
  );
  for (const fault of report.faults.slice(0, 20)) process.stdout.write(`FAULT ${fault}\n`);
  process.exit(report.faults.length === 0 ? 0 : 1);
}

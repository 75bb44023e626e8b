import { link, mkdir } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { Socket } from 'node:net';
import { join, parse } from 'node:path';
import vm from 'node:vm';
import {
  chromium,
  type Browser,
  type BrowserContext,
  type CDPSession,
  type Download,
  type Page,
} from 'playwright-core';

/**
 * Runs Playwright code next to the browser it drives. It stays connected from one run to the next. The code may do anything to it; if it
 * breaks, a new runner is started. CDP messages go over descriptor 3, each after its length.
 */
const HOME = process.env['HOME'] ?? '/tmp';
/** Where Playwright stores downloads, under names of its own. On the same file system as Downloads. */
const ARTIFACTS = join(HOME, '.cache/corral/playwright');
const DOWNLOADS = join(HOME, 'Downloads');
const LOOK_MS = 500;
/** When no tab has said by then that it is visible: on a busy machine the tab in front takes its time. */
const LONGEST_LOOK_MS = 3000;
/** The id of a message that Playwright did not send. Playwright counts from one. */
const OURS = 2 ** 31 - 1;

const amaro = createRequire(import.meta.url)('amaro') as {
  transformSync(code: string, options: object): { code: string };
};
const socket = new Socket({ fd: 3, readable: true, writable: true });
const say = process.send?.bind(process);
let connected: Promise<Browser> | undefined;
/** Directs downloads to where this Playwright looks for them. For each run, since any client that connects directs them elsewhere. */
let takeDownloads = () => {};
/** The code has closed the browser, that is, this connection to it. There is no other connection. */
let spent = false;

process.on('message', (message: { code: string; mark: string }) => {
  void run(message.code).then((outcome) => {
    // All output is written by now: writes to pipes are synchronous.
    for (const stream of [process.stdout, process.stderr]) stream.write(message.mark);
    say?.({ ...outcome, spent });
    if (spent) process.disconnect();
  });
});
process.on('disconnect', () => process.exit());

async function run(code: string): Promise<object> {
  try {
    const work = compile(code);
    const browser = await connect();
    takeDownloads();
    const context = browser.contexts()[0] ?? (await browser.newContext());
    const page = await activePage(context);
    const letGo = await keepAwake(context);
    const result = await work(page, context, browser).finally(letGo);
    return { success: true, result: toJson(result) };
  } catch (error) {
    const { message, stack } = error instanceof Error ? error : { message: String(error), stack: undefined };
    return { success: false, error: message, ...(stack === undefined ? {} : { stack }) };
  }
}

type Work = (page: Page, context: BrowserContext, browser: Browser) => Promise<unknown>;

/** TypeScript or JavaScript: the body of an async function. */
function compile(code: string): Work {
  let plain: string;
  try {
    plain = amaro.transformSync(`(async (page, context, browser) => {\n${code}\n});`, { mode: 'transform' }).code;
  } catch (error) {
    const { message } = error instanceof Error ? error : { message: String(error) };
    throw new SyntaxError(`The code cannot be read: ${message}`, { cause: error });
  }
  return new vm.Script(plain, {
    filename: 'code.ts',
    lineOffset: -1,
    importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  }).runInThisContext() as Work;
}

function toJson(result: unknown): string {
  try {
    return JSON.stringify(result) ?? 'null';
  } catch (error) {
    throw new TypeError(`The result cannot be put into JSON: ${(error as Error).message}`, { cause: error });
  }
}

async function connect(): Promise<Browser> {
  const there = await connected?.catch(() => undefined);
  if (there?.isConnected()) return there;
  await mkdir(ARTIFACTS, { recursive: true });
  const connection = transport();
  // Playwright must not change defaults of the user's browser, but needs download events.
  connected = chromium.connectOverCDP(connection, { artifactsDir: ARTIFACTS, noDefaults: true });
  const browser = await connected;
  const behaviour = { behavior: 'allowAndName', downloadPath: ARTIFACTS, eventsEnabled: true };
  takeDownloads = () => connection.send({ id: OURS, method: 'Browser.setDownloadBehavior', params: behaviour });
  for (const context of browser.contexts()) context.on('page', watchDownloads).pages().forEach(watchDownloads);
  return browser;
}

const watchDownloads = (page: Page) => void page.on('download', (download) => void keep(download));

/** Playwright stores a download under a name of its own; links it under its original name, too. */
async function keep(download: Download): Promise<void> {
  const path = await download.path().catch(() => undefined);
  if (path === undefined) return;
  await mkdir(DOWNLOADS, { recursive: true });
  const { name, ext } = parse(download.suggestedFilename());
  for (let count = 0; count < 1000; count++) {
    const wanted = join(DOWNLOADS, count === 0 ? `${name}${ext}` : `${name} (${count})${ext}`);
    const taken = await link(path, wanted).then(
      () => false,
      (error: NodeJS.ErrnoException) => error.code === 'EEXIST',
    );
    if (!taken) return;
  }
}

/** The tab with the focus, or the last visible one, or the first. */
async function activePage(context: BrowserContext): Promise<Page> {
  const pages = context.pages();
  if (pages.length <= 1) return pages[0] ?? context.newPage();
  const asked = pages.map((page) => page.evaluate<number>(seen));
  const answers = (ms: number) => Promise.all(asked.map((look) => soon(look, 0, ms)));
  let looks = await answers(LOOK_MS);
  if (Math.max(...looks) === 0) {
    const visible = asked.map(async (look) => (await look) || Promise.reject(new Error('It is hidden.')));
    await soon(Promise.any(visible), 0, LONGEST_LOOK_MS);
    looks = await answers(0);
  }
  const best = Math.max(...looks);
  return pages[looks.lastIndexOf(best)] ?? pages[0]!;
}

const seen = `document.visibilityState === 'visible' ? (document.hasFocus() ? 2 : 1) : 0`;

/**
 * As Playwright does by default: background tabs behave as if they were in front, because otherwise work that waits for them to be drawn
 * would wait for ever. Only while code runs, since otherwise the tab in front could not be determined.
 */
async function keepAwake(context: BrowserContext): Promise<() => Promise<void>> {
  const sessions: CDPSession[] = [];
  let over = false;
  const wake = async (page: Page) => {
    const session = await context.newCDPSession(page);
    if (over) return session.detach(); // a page of the code's last moment
    sessions.push(session);
    await session.send('Emulation.setFocusEmulationEnabled', { enabled: true });
  };
  const later = (page: Page) => void wake(page).catch(() => {});
  context.on('page', later);
  await soon(Promise.allSettled(context.pages().map(wake)), []);
  return async () => {
    over = true;
    context.off('page', later);
    await soon(Promise.allSettled(sessions.map((session) => session.detach())), []);
  };
}

/** A page that is stuck is not waited for. */
async function soon<T>(work: Promise<unknown>, otherwise: T, ms = LOOK_MS): Promise<T> {
  const late = new Promise<T>((resolve) => setTimeout(() => resolve(otherwise), ms));
  return Promise.race([work as Promise<T>, late]).catch(() => otherwise);
}

function transport() {
  const connection = {
    onmessage: undefined as ((message: object) => void) | undefined,
    onclose: undefined as ((reason?: string) => void) | undefined,
    send(message: object) {
      const body = Buffer.from(JSON.stringify(message));
      const head = Buffer.allocUnsafe(4);
      head.writeUInt32LE(body.length);
      socket.cork();
      socket.write(head);
      socket.write(body);
      socket.uncork();
    },
    close() {
      spent = true;
      connection.onclose?.();
    },
  };
  let rest: Buffer = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    while (rest.length >= 4 && rest.length >= 4 + rest.readUInt32LE(0)) {
      const end = 4 + rest.readUInt32LE(0);
      const message = rest.toString('utf8', 4, end);
      rest = rest.subarray(end);
      const parsed = JSON.parse(message) as { id?: number };
      // One message per turn: Playwright listens for what follows an answer only after it has processed the answer.
      if (parsed.id !== OURS) setImmediate(() => connection.onmessage?.(parsed));
    }
  });
  socket.once('close', () => {
    connection.onclose?.();
    process.exit();
  });
  socket.on('error', () => {});
  return connection;
}

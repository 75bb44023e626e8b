import { setTimeout as sleep } from 'node:timers/promises';
import { CdpError, type LocalClient } from '../../chromium/cdp/local-client.ts';
import type { Mux } from '../../chromium/cdp/mux.ts';
import { isAttached, isEvaluated, isTargetList } from '../../chromium/cdp/shapes.ts';
import { errors, ServiceError } from '../../errors.ts';
import type { MemoryShare } from '../../lib/memory-share.ts';
import { anyText, object, optional } from '../../lib/shape.ts';
import { resourceTypes, type Common, type Lifecycle } from './schema.ts';

const isFrameTree = object({ frameTree: object({ frame: object({ id: anyText }) }) });
const isLifecycle = object({ frameId: anyText, name: anyText });
const isNavigated = object({ errorText: optional(anyText) });
const isPaused = object({ requestId: anyText });

/** The protocol's names of the events that a client may wait for. */
const lifecycleNames: Record<Lifecycle, string> = {
  load: 'load',
  domcontentloaded: 'DOMContentLoaded',
  networkidle0: 'networkIdle',
  networkidle2: 'networkAlmostIdle',
};

const LOOK_MS = 50;
const DEFAULT_MS = 30_000;

export type Page = Awaited<ReturnType<typeof openPage>>;

/** A page for a request that reads from it. `room` counts what was read, from its arrival until the request is answered. */
export interface ReadPage extends Page {
  room: Pick<MemoryShare, 'add'>;
}

/** The first page of a session that was made for one request. `signal` ends the request and all its waits. */
export async function openPage(mux: Mux, signal: AbortSignal) {
  const client = mux.attachLocal();
  const close = () => {
    signal.removeEventListener('abort', close);
    client.close();
  };
  signal.addEventListener('abort', close, { once: true });
  try {
    return { ...(await attach(client, signal)), close };
  } catch (error) {
    close();
    throw error;
  }
}

async function attach(client: LocalClient, signal: AbortSignal) {
  signal.throwIfAborted();
  const { targetInfos } = await client.ask(isTargetList, 'Target.getTargets');
  const target = targetInfos.find(({ type }) => type === 'page');
  if (!target) throw errors.page_not_loaded({ detail: 'The browser has no page.' });
  const { sessionId } = await client.ask(isAttached, 'Target.attachToTarget', {
    targetId: target.targetId,
    flatten: true,
  });
  await client.send('Page.enable', {}, sessionId);
  const { frameTree } = await client.ask(isFrameTree, 'Page.getFrameTree', {}, sessionId);
  /** What the newest document of the page has reached. */
  const reached = new Set<string>();
  client.on('Page.lifecycleEvent', isLifecycle, ({ frameId, name }, from) => {
    if (from !== sessionId || frameId !== frameTree.frame.id) return;
    if (name === 'init') reached.clear();
    reached.add(name);
  });
  await client.send('Page.setLifecycleEventsEnabled', { enabled: true }, sessionId);

  /** The value of an expression in the page; promises are awaited. */
  async function evaluate(expression: string): Promise<unknown> {
    const params = { expression, returnByValue: true, awaitPromise: true };
    const answer = await client.ask(isEvaluated, 'Runtime.evaluate', params, sessionId, { patient: true });
    if (!answer.exceptionDetails) return answer.result['value'];
    const { description } = answer.result;
    const why = typeof description === 'string' ? description.split('\n', 1)[0]!.slice(0, 500) : 'an error';
    throw errors.page_not_loaded({ detail: `The page answered with ${why}` });
  }

  async function until(what: string, ms: number, done: () => boolean | Promise<boolean>): Promise<void> {
    const end = performance.now() + ms;
    while (!(await done())) {
      if (performance.now() > end) throw errors.page_timed_out({ what, ms });
      await sleep(LOOK_MS, undefined, { signal });
    }
  }

  /** Opens the address, or writes the HTML, and waits as far as the client asked. */
  async function load({ url, html, gotoOptions = {} }: Common): Promise<void> {
    const { timeout = DEFAULT_MS, referer, waitUntil = 'load' } = gotoOptions;
    reached.clear();
    if (url !== undefined) {
      const params = { url, ...(referer === undefined ? {} : { referrer: referer }) };
      const going = client.ask(isNavigated, 'Page.navigate', params, sessionId, { patient: true });
      let gone = false;
      void going.then(
        () => (gone = true),
        () => (gone = true),
      );
      await until('The navigation', timeout, () => gone);
      const { errorText } = await going;
      if (errorText !== undefined)
        throw errors.page_not_loaded({ detail: `The page could not be opened: ${errorText.slice(0, 200)}.` });
    } else await evaluate(`document.open(); document.write(${JSON.stringify(html)}); document.close(); 0`);
    for (const name of [waitUntil].flat())
      await until(`"${name}"`, timeout, () => reached.has('init') && reached.has(lifecycleNames[name]));
  }

  return { client, sessionId, signal, evaluate, until, load };
}

/** What has to be in place before the first request of the page. */
export async function prepare({ client, sessionId }: Page, wishes: Common): Promise<void> {
  const { viewport, userAgent, setExtraHTTPHeaders: headers, cookies, rejectResourceTypes: rejected } = wishes;
  if (viewport) {
    const { width, height, deviceScaleFactor = 1, isMobile: mobile = false, hasTouch } = viewport;
    await client.send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor, mobile }, sessionId);
    if (hasTouch) await client.send('Emulation.setTouchEmulationEnabled', { enabled: true }, sessionId);
  }
  if (userAgent !== undefined) await client.send('Emulation.setUserAgentOverride', { userAgent }, sessionId);
  if (headers || cookies) await client.send('Network.enable', {}, sessionId);
  if (headers) await client.send('Network.setExtraHTTPHeaders', { headers }, sessionId);
  if (cookies) {
    const { url } = wishes;
    const own = cookies.map((one) => (one.url || one.domain || url === undefined ? one : { ...one, url }));
    await client.send('Network.setCookies', { cookies: own }, sessionId).catch(asRefusal('cookies'));
  }
  if (wishes.setJavaScriptEnabled === false)
    await client.send('Emulation.setScriptExecutionDisabled', { value: true }, sessionId);
  if (wishes.emulateMediaType !== undefined)
    await client.send('Emulation.setEmulatedMedia', { media: wishes.emulateMediaType }, sessionId);
  if (rejected && rejected.length > 0) {
    client.on('Fetch.requestPaused', isPaused, ({ requestId }, from) =>
      client.send('Fetch.failRequest', { requestId, errorReason: 'BlockedByClient' }, from),
    );
    const patterns = rejected.map((type) => ({ resourceType: resourceTypes[type] }));
    await client.send('Fetch.enable', { patterns }, sessionId);
  }
}

/** Loads the page, adds tags to it and waits. With `bestAttempt`, what fails or takes too long is left out. */
export async function arriveAt(page: Page, wishes: Common): Promise<void> {
  const attempt = async (step: () => Promise<unknown>) => {
    try {
      await step();
    } catch (error) {
      const goOn = error instanceof ServiceError && error.code.startsWith('page_');
      if (!goOn || !wishes.bestAttempt || page.signal.aborted) throw error;
    }
  };
  await attempt(() => page.load(wishes));
  for (const tag of wishes.addStyleTag ?? []) await attempt(() => page.evaluate(adding('style', tag)));
  for (const tag of wishes.addScriptTag ?? []) await attempt(() => page.evaluate(adding('script', tag)));
  const { waitForEvent, waitForFunction, waitForSelector, waitForTimeout } = wishes;
  if (waitForTimeout) await sleep(waitForTimeout, undefined, { signal: page.signal });
  if (waitForFunction) await attempt(() => functionIn(page, waitForFunction));
  if (waitForSelector) await attempt(() => selectorIn(page, waitForSelector));
  if (waitForEvent) await attempt(() => eventIn(page, waitForEvent));
}

export async function selectorIn(
  page: Page,
  wish: { selector: string; hidden?: boolean; visible?: boolean; timeout?: number },
): Promise<void> {
  const { selector, hidden = false, visible = false, timeout = DEFAULT_MS } = wish;
  const seen = `(() => {
    const found = document.querySelector(${JSON.stringify(selector)});
    const shown = found && getComputedStyle(found).visibility !== 'hidden' && found.getClientRects().length > 0;
    return ${hidden ? '!shown' : visible ? 'Boolean(shown)' : 'found !== null'};
  })()`;
  await page.until(`The selector ${JSON.stringify(selector.slice(0, 200))}`, timeout, async () =>
    Boolean(await page.evaluate(seen)),
  );
}

function functionIn(page: Page, { fn, timeout = DEFAULT_MS }: { fn: string; timeout?: number }): Promise<void> {
  const asked = `(async () => { const it = (${fn}\n); return Boolean(await (typeof it === 'function' ? it() : it)); })()`;
  return page.until('waitForFunction', timeout, async () => (await page.evaluate(asked)) === true);
}

async function eventIn(page: Page, { event, timeout = DEFAULT_MS }: { event: string; timeout?: number }) {
  let heard = false;
  const name = JSON.stringify(event);
  const happened = page.evaluate(
    `new Promise((done) => { for (const one of [document, window]) one.addEventListener(${name}, () => done(true), { once: true }); })`,
  );
  void happened.then(
    () => (heard = true),
    () => {},
  );
  await page.until(`The event ${name}`, timeout, () => heard);
}

function adding(kind: 'script' | 'style', { url, content }: { url?: string; content?: string }): string {
  if ((url === undefined) === (content === undefined))
    throw errors.invalid_input({ detail: `Each tag to add has a url or a content, and not both (${kind}).` });
  const [element, key] = kind === 'script' ? ['script', 'src'] : url === undefined ? ['style', ''] : ['link', 'href'];
  return `new Promise((done, failed) => {
    const added = document.createElement('${element}');
    ${element === 'link' ? "added.rel = 'stylesheet';" : ''}
    ${url === undefined ? `added.textContent = ${JSON.stringify(content)};` : `added.${key} = ${JSON.stringify(url)};`}
    added.onload = () => done(0);
    added.onerror = () => failed(new Error('that a tag could not be loaded'));
    document.head.append(added);
    ${url === undefined ? 'done(0);' : ''}
  })`;
}

/** The browser refuses a value that fits the schema: the client's fault, in the browser's words. */
export const asRefusal = (field: string) => (error: Error) => {
  if (!(error instanceof CdpError) || error.code === undefined) throw error;
  throw errors.invalid_input({ detail: `${field}: ${error.message.slice(0, 300)}` });
};

import { CdpError, type LocalClient } from '../../chromium/cdp/local-client.ts';
import type { Mux } from '../../chromium/cdp/mux.ts';
import { isAttached, isEvaluated, isTargetList } from '../../chromium/cdp/shapes.ts';
import { errors } from '../../errors.ts';
import { anyText, flag, list, number, object, optional, table, type Checked } from '../../lib/shape.ts';
import { asRefusal, openPage, type Page } from '../browserless/page.ts';
import { isWellFormed } from '../../lib/text.ts';
import { urlOf } from '../../lib/urls.ts';
import type { SessionContext } from './schema.ts';

const isCookies = object({
  cookies: list(
    object({
      name: anyText,
      value: anyText,
      domain: anyText,
      path: anyText,
      expires: number(-1, 1e15),
      size: number(0, 1e9),
      httpOnly: flag,
      secure: flag,
      session: flag,
      sameSite: optional(anyText),
      priority: anyText,
      sourceScheme: anyText,
      sourcePort: number(-1, 65_535),
      partitionKey: optional(object({ topLevelSite: anyText, hasCrossSiteAncestor: flag })),
    }),
  ),
});
const isStored = object({ origin: anyText, local: table(anyText), session: table(anyText) });
const isPaused = object({ requestId: anyText });

/** The result is sent as the body of a new session, which has at most 8 MiB. */
const MOST_STORED = 8 * 1024 * 1024;

/** Of the JSON of a site's storage, in characters. */
const PIECE = 32 * 1024;
/** A scheme, a name of 253 letters and a port. Long names of many alphabets take milliseconds to read: 200 of 40 KB took a second. */
const MOST_ORIGIN = 8 + 253 + 6;

type Items = Record<string, Record<string, string>>;
type Stored = { local: Record<string, string>; session: Record<string, string> };

const READ_STORAGE = `(() => {
  const items = (storage) => Object.fromEntries(Array.from({ length: storage.length }, (_, at) => {
    const key = storage.key(at);
    return [key, storage.getItem(key)];
  }));
  return { origin: location.origin, local: items(localStorage), session: items(sessionStorage) };
})()`;

/** All cookies of a browser, and the storage of the sites of its open pages. */
export async function readContext(mux: Mux) {
  const client = mux.attachLocal();
  try {
    const { cookies } = await client.ask(isCookies, 'Storage.getCookies');
    const { targetInfos } = await client.ask(isTargetList, 'Target.getTargets');
    const pages = targetInfos.filter(({ type, url }) => type === 'page' && /^https?:/.test(url));
    // Without a prototype: a browser that was taken over names its origins and items.
    const localStorage = Object.create(null) as Items;
    const sessionStorage = Object.create(null) as Items;
    let size = 0;
    // One page after the other: each may have stored ten megabytes.
    for (const { targetId } of pages) {
      const stored = await storageOf(client, targetId);
      if (!stored || urlOf(stored.origin)?.origin !== stored.origin) continue;
      const { origin, local, session } = stored;
      const domain = origin.replace(/^https:\/\//, '');
      for (const [all, items] of [
        [localStorage, local],
        [sessionStorage, session],
      ] as const) {
        size += sizeOf(items);
        if (size > MOST_STORED)
          throw errors.page_not_loaded({
            detail: `The open pages have stored more than ${MOST_STORED} characters, which is more than a new session takes. Close some of them.`,
          });
        if (Object.keys(items).length > 0) Object.assign((all[domain] ??= Object.create(null) as Items[string]), items);
      }
    }
    return { cookies, localStorage, sessionStorage };
  } finally {
    client.close();
  }
}

/** Undefined when the page has closed or does not answer: the other pages do. */
async function storageOf(client: LocalClient, targetId: string): Promise<Checked<typeof isStored> | undefined> {
  try {
    const { sessionId } = await client.ask(isAttached, 'Target.attachToTarget', { targetId, flatten: true });
    const asked = { expression: READ_STORAGE, returnByValue: true };
    const { result } = await client.ask(isEvaluated, 'Runtime.evaluate', asked, sessionId);
    const { value } = result;
    return isStored(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** An entry takes some room beside its text. */
const sizeOf = (items: Record<string, string>) =>
  Object.entries(items).reduce((sum, [key, value]) => sum + key.length + value.length + 16, 0);

/** Gives a new session the cookies and the storage of another. */
export async function restoreContext(mux: Mux, context: SessionContext, signal: AbortSignal): Promise<void> {
  const { cookies = [], localStorage = {}, sessionStorage = {} } = context;
  const origins = originsOf({ localStorage, sessionStorage });
  if (
    !cookies.every((cookie) => Object.values(cookie).every((value) => typeof value !== 'string' || isWellFormed(value)))
  )
    throw errors.invalid_input({
      detail: 'sessionContext.cookies: a text has half of a surrogate pair, which no cookie has.',
    });
  const page = await openPage(mux, signal);
  const { client, sessionId } = page;
  try {
    if (cookies.length > 0)
      await client
        .send('Storage.setCookies', { cookies: cookies.map(settable) })
        .catch(asRefusal('sessionContext.cookies'));
    if (origins.size === 0) return;
    // Storage is bound to an origin, so a page of the origin is needed. Its requests are answered here: nothing is loaded.
    client.on('Fetch.requestPaused', isPaused, ({ requestId }, from) =>
      client.send(
        'Fetch.fulfillRequest',
        { requestId, responseCode: 200, responseHeaders: [{ name: 'Content-Type', value: 'text/html' }], body: '' },
        from,
      ),
    );
    await client.send('Fetch.enable', { patterns: [{ urlPattern: '*' }] }, sessionId);
    for (const [origin, { local, session }] of origins) {
      await page.load({ url: `${origin}/` });
      await writeStorage(page, { local, session });
    }
    await client.send('Fetch.disable', {}, sessionId);
    await page.load({ url: 'about:blank' });
    await client.send('Page.resetNavigationHistory', {}, sessionId);
  } catch (error) {
    if (error instanceof CdpError) throw errors.page_not_loaded({ detail: error.message.slice(0, 300) });
    throw error;
  } finally {
    page.close();
  }
}

/** The page of an origin is empty, so no script of the site sees the variable. */
async function writeStorage(page: Page, stored: Stored): Promise<void> {
  await page.evaluate(`globalThis.stored = ''`);
  for (const piece of storedJson(stored)) await page.evaluate(`stored += ${JSON.stringify(piece)}; 0`);
  await page.evaluate(`(() => {
    const { local, session } = JSON.parse(stored);
    for (const [key, value] of Object.entries(local)) localStorage.setItem(key, value);
    for (const [key, value] of Object.entries(session)) sessionStorage.setItem(key, value);
  })()`);
}

/**
 * The JSON of a site's storage, in pieces of some ten thousand characters. Half of a surrogate pair takes long to write: a value of 8 MB
 * of them took 0.2 s.
 */
export function* storedJson({ local, session }: Stored): Generator<string> {
  let text = '';
  for (const parts of ['{"local":', itemsJson(local), ',"session":', itemsJson(session), '}'])
    for (const part of typeof parts === 'string' ? [parts] : parts) {
      text += part;
      if (text.length < PIECE) continue;
      yield text;
      text = '';
    }
  yield text;
}

function* itemsJson(items: Stored['local']): Generator<string> {
  let before = '{';
  for (const [key, value] of Object.entries(items)) {
    yield before;
    yield* textJson(key);
    yield ':';
    yield* textJson(value);
    before = ',';
  }
  yield before === '{' ? '{}' : '}';
}

function* textJson(text: string): Generator<string> {
  yield '"';
  for (let at = 0; at < text.length; at += PIECE) yield JSON.stringify(text.slice(at, at + PIECE)).slice(1, -1);
  yield '"';
}

/** Read-only fields of a cookie cannot be set; a cookie of the browser's session has no date. */
function settable(cookie: NonNullable<SessionContext['cookies']>[number]) {
  const { size: _, sameParty: __, session = false, expires = -1, ...rest } = cookie;
  return { ...rest, ...(session || expires < 0 ? {} : { expires }) };
}

/** A domain without a scheme means https. */
export function originsOf({ localStorage, sessionStorage }: { localStorage: Items; sessionStorage: Items }) {
  const origins = new Map<string, Stored>();
  const at = (field: string, domain: string) => {
    const address = domain.includes('://') ? domain : `https://${domain}`;
    const url = address.length <= MOST_ORIGIN ? urlOf(address) : undefined;
    if (!url || !/^https?:$/.test(url.protocol))
      throw errors.invalid_input({
        detail: `sessionContext.${field}: each key is a domain or an origin of a web site, of at most ${MOST_ORIGIN} letters.`,
      });
    const found = origins.get(url.origin) ?? { local: {}, session: {} };
    origins.set(url.origin, found);
    return found;
  };
  for (const [domain, items] of Object.entries(localStorage)) Object.assign(at('localStorage', domain).local, items);
  for (const [domain, items] of Object.entries(sessionStorage))
    Object.assign(at('sessionStorage', domain).session, items);
  return origins;
}

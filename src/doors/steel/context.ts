import { CdpError, type LocalClient } from '../../chromium/cdp/local-client.ts';
import type { Mux } from '../../chromium/cdp/mux.ts';
import { isAttached, isEvaluated, isTargetList } from '../../chromium/cdp/shapes.ts';
import { errors } from '../../errors.ts';
import { anyText, flag, list, number, object, optional, table, type Checked } from '../../lib/shape.ts';
import { asRefusal, openPage } from '../browserless/page.ts';
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

type Items = Record<string, Record<string, string>>;

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
    const localStorage: Items = {};
    const sessionStorage: Items = {};
    let size = 0;
    // One page after the other: each may have stored ten megabytes.
    for (const { targetId } of pages) {
      const stored = await storageOf(client, targetId);
      if (!stored) continue;
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
        if (Object.keys(items).length > 0) Object.assign((all[domain] ??= {}), items);
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
      await page.evaluate(writeStorage(local, session));
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

const writeStorage = (local: Record<string, string>, session: Record<string, string>) => `(() => {
  for (const [key, value] of Object.entries(${JSON.stringify(local)})) localStorage.setItem(key, value);
  for (const [key, value] of Object.entries(${JSON.stringify(session)})) sessionStorage.setItem(key, value);
})()`;

/** Read-only fields of a cookie cannot be set; a cookie of the browser's session has no date. */
function settable(cookie: NonNullable<SessionContext['cookies']>[number]) {
  const { size: _, sameParty: __, session = false, expires = -1, ...rest } = cookie;
  return { ...rest, ...(session || expires < 0 ? {} : { expires }) };
}

/** A domain without a scheme means https. */
export function originsOf({ localStorage, sessionStorage }: { localStorage: Items; sessionStorage: Items }) {
  const origins = new Map<string, { local: Record<string, string>; session: Record<string, string> }>();
  const at = (field: string, domain: string) => {
    const address = domain.includes('://') ? domain : `https://${domain}`;
    const url = URL.canParse(address) ? new URL(address) : undefined;
    if (!url || !/^https?:$/.test(url.protocol))
      throw errors.invalid_input({
        detail: `sessionContext.${field}: each key is a domain or an origin of a web site.`,
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

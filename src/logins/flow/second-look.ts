import { prepare } from '../reading/prepare.ts';
import { FormsError, isFrozen, isPassing, type FlowBrowser } from './browser.ts';
import { keyOf } from './look.ts';
import { pause } from './pause.ts';
import { standardDeadlines, type Look, type Reader } from './types.ts';
import { saysOf } from './signs.ts';

const settleMs = 10_000;
const mostWaits = 4;
/** Waits for a document that shows something and is not complete: a picture of it may never come. */
const mostLoadingWaits = 2;
const mostSteadyLooks = 3;
const mostMenus = 2;

export interface Watcher {
  browser: FlowBrowser;
  read: Reader;
  domain: string;
  patience?: number | undefined;
  /** See `FlowDeadlines`. */
  coming?: number | undefined;
  /** So long, in milliseconds, a page without a form is looked at before it counts as one: its form took as long before. */
  formTakes?: number | undefined;
  /** A page that says nothing is looked at with its menus open too. The way in and the way out may be in one. */
  menus?: boolean | undefined;
}

/** Reads an address in a page of its own, which is closed again. Undefined when the address does not answer. */
export function lookElsewhere(watcher: Watcher, url: string, signal: AbortSignal): Promise<Look | undefined> {
  return inOwnPage(watcher, watcher.browser.open(url), async (pageId) => {
    const look = await lookUntilFinished(watcher, pageId, signal);
    return look && withMenus(watcher, pageId, look, signal);
  });
}

/**
 * The same, looked at several times: an application shows its shell before it learns that its token is dead, and a browser
 * shows a page of its cache. `steady` when the last two looks say the same.
 */
export function lookTwice(
  watcher: Watcher,
  url: string,
  signal: AbortSignal,
): Promise<{ look: Look; steady: boolean } | undefined> {
  const { browser, patience = standardDeadlines.patience } = watcher;
  return inOwnPage(watcher, browser.open(url), async (pageId) => {
    let before = await lookUntilFinished(watcher, pageId, signal);
    // A form needs no second look.
    if (!before || saysOf(before.reading) === 'out') return before && { look: before, steady: true };
    await browser.reload(pageId);
    const soon = { ...watcher, formTakes: 0 };
    for (let looks = 1; ; looks++) {
      const first = await lookUntilFinished(soon, pageId, signal);
      await pause(4 * patience, signal);
      const look = (await lookUntilFinished(soon, pageId, signal)) ?? first;
      if (!look) return undefined;
      const says = saysOf(look.reading);
      const steady = saysOf(before.reading) === says && (!first || saysOf(first.reading) === says);
      if (steady || says === 'out' || looks === mostSteadyLooks)
        return { look: await withMenus(watcher, pageId, look, signal), steady };
      before = look;
    }
  });
}

/**
 * What an address shows to this profile, and to a visitor that the site does not know. A page that shows its way out to everyone until it
 * has found out who is there says nothing: the profile's page is read last, and has had more time.
 */
export function lookBeside(
  watcher: Watcher,
  url: string,
  signal: AbortSignal,
): Promise<{ ours: Look; strangers: Look } | undefined> {
  const { browser } = watcher;
  return inOwnPage(watcher, browser.open(url), async (pageId) => {
    const strangers = await inOwnPage(watcher, browser.openStranger(url), (other) =>
      lookUntilOut(watcher, other, signal),
    );
    if (!strangers) return undefined;
    const ours = await lookUntilFinished(watcher, pageId, signal);
    return ours && { ours: await withMenus(watcher, pageId, ours, signal), strangers };
  });
}

/** A page that seems to show an account to a visitor that the site does not know will show something else. */
async function lookUntilOut(watcher: Watcher, pageId: string, signal: AbortSignal): Promise<Look | undefined> {
  const { patience = standardDeadlines.patience, coming = standardDeadlines.coming } = watcher;
  for (const until = Date.now() + coming; ;) {
    const look = await lookUntilFinished(watcher, pageId, signal);
    const says = look && saysOf(look.reading);
    if (!look || says === 'out') return look;
    if (says === 'nothing') return withMenus(watcher, pageId, look, signal);
    if (Date.now() >= until) return look;
    await pause(4 * patience, signal);
  }
}

/** The time after which a page without its form has none any more. Machines are not equally fast each time. */
export const timeFor = (formTook: number, most: number = standardDeadlines.coming) => Math.min(1.5 * formTook, most);

async function inOwnPage<T>(
  { browser }: Watcher,
  opening: Promise<string>,
  see: (pageId: string) => Promise<T>,
): Promise<T> {
  const pageId = await opening;
  try {
    return await see(pageId);
  } finally {
    await browser.close(pageId).catch(() => undefined);
  }
}

async function lookUntilFinished(watcher: Watcher, pageId: string, signal: AbortSignal): Promise<Look | undefined> {
  const { browser, patience = standardDeadlines.patience, coming = standardDeadlines.coming, formTakes = 0 } = watcher;
  const began = Date.now();
  for (let waits = 0; ; waits++) {
    await browser.settled(pageId, { deadlineMs: settleMs, signal });
    const look = await lookOnce(watcher, pageId);
    const waited = Date.now() - began;
    const mayCome = waited < formTakes && look !== undefined && saysOf(look.reading) !== 'out';
    if (look && !mayCome && !isUnfinished(look, waits)) return /^https?:/.test(look.snapshot.url) ? look : undefined;
    // Scripts may still ask their server whether the login holds.
    if (waits >= mostWaits && (waited >= coming || (look && !mayCome && look.reading.kind !== 'blank'))) return look;
    await pause(patience * Math.min(waits + 1, mostWaits), signal);
  }
}

async function lookOnce({ browser, read, domain }: Watcher, pageId: string): Promise<Look | undefined> {
  try {
    const snapshot = await browser.snapshot(pageId);
    await prepare(snapshot);
    const reading = read(snapshot, { domain });
    return { snapshot, reading, key: keyOf({ snapshot, reading }) };
  } catch (error) {
    if (isPassing(error) || isFrozen(error)) return undefined;
    throw error;
  }
}

const isUnfinished = ({ snapshot, reading }: Look, waits: number) =>
  /^https?:/.test(snapshot.url) &&
  (reading.kind === 'blank' || (reading.kind === 'unknown' && snapshot.loading && waits < mostLoadingWaits));

/** The page with what it says once a menu of it is open, if it says nothing before. */
async function withMenus(watcher: Watcher, pageId: string, look: Look, signal: AbortSignal): Promise<Look> {
  const { browser, menus = false } = watcher;
  if (!menus || saysOf(look.reading) !== 'nothing') return look;
  for (const { ref } of look.reading.next.filter(({ why }) => why === 'menu').slice(0, mostMenus)) {
    try {
      await browser.act(pageId, { kind: 'click', ref });
      await browser.settled(pageId, { deadlineMs: settleMs, signal });
      const opened = await lookOnce(watcher, pageId);
      if (opened && saysOf(opened.reading) !== 'nothing') return { ...look, reading: opened.reading, inMenu: true };
    } catch (error) {
      if (!(error instanceof FormsError)) throw error; // it is covered, or gone
    }
  }
  return look;
}

import { prepare } from '../reading/prepare.ts';
import type { Reading } from '../reading/types.ts';
import { isPassing, type FlowBrowser } from './browser.ts';
import { keyOf } from './look.ts';
import { pause } from './pause.ts';
import { standardDeadlines, type Look, type Reader } from './types.ts';

const settleMs = 10_000;
const mostWaits = 4;
/** Waits for a document that shows something and is not complete: a picture of it may never come. */
const mostLoadingWaits = 2;
const mostSteadyLooks = 3;

interface Watcher {
  browser: FlowBrowser;
  read: Reader;
  domain: string;
  patience?: number | undefined;
}

/** Reads an address in a page of its own, which is closed again. Undefined when the address does not answer. */
export function lookElsewhere(watcher: Watcher, url: string, signal: AbortSignal): Promise<Look | undefined> {
  return inOwnPage(watcher, url, (pageId) => lookUntilFinished(watcher, pageId, signal));
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
  return inOwnPage(watcher, url, async (pageId) => {
    let before = await lookUntilFinished(watcher, pageId, signal);
    // A form needs no second look.
    if (!before || saysOf(before.reading) === 'out') return before && { look: before, steady: true };
    await browser.reload(pageId);
    for (let looks = 1; ; looks++) {
      const first = await lookUntilFinished(watcher, pageId, signal);
      await pause(4 * patience, signal);
      const look = (await lookUntilFinished(watcher, pageId, signal)) ?? first;
      if (!look) return undefined;
      const says = saysOf(look.reading);
      const steady = saysOf(before.reading) === says && (!first || saysOf(first.reading) === says);
      if (steady || says === 'out' || looks === mostSteadyLooks) return { look, steady };
      before = look;
    }
  });
}

async function inOwnPage<T>({ browser }: Watcher, url: string, see: (pageId: string) => Promise<T>): Promise<T> {
  const pageId = await browser.open(url);
  try {
    return await see(pageId);
  } finally {
    await browser.close(pageId).catch(() => undefined);
  }
}

async function lookUntilFinished(
  { browser, read, domain, patience = standardDeadlines.patience }: Watcher,
  pageId: string,
  signal: AbortSignal,
): Promise<Look | undefined> {
  for (let waits = 0; ; waits++) {
    await browser.settled(pageId, { deadlineMs: settleMs, signal });
    const look = await lookOnce(browser, read, domain, pageId);
    if (look && !isUnfinished(look, waits)) return /^https?:/.test(look.snapshot.url) ? look : undefined;
    // Scripts may still ask their server whether the login holds.
    if (waits === mostWaits) return look;
    await pause(patience * (waits + 1), signal);
  }
}

async function lookOnce(browser: FlowBrowser, read: Reader, domain: string, pageId: string): Promise<Look | undefined> {
  try {
    const snapshot = await browser.snapshot(pageId);
    await prepare(snapshot);
    const reading = read(snapshot, { domain });
    return { snapshot, reading, key: keyOf({ snapshot, reading }) };
  } catch (error) {
    if (isPassing(error)) return undefined;
    throw error;
  }
}

const isUnfinished = ({ snapshot, reading }: Look, waits: number) =>
  /^https?:/.test(snapshot.url) &&
  (reading.kind === 'blank' || (reading.kind === 'unknown' && snapshot.loading && waits < mostLoadingWaits));

/** What a page says about whether its visitor is logged in. */
export function saysOf({ kind }: Reading): 'in' | 'out' | 'nothing' {
  switch (kind) {
    case 'signed_in':
      return 'in';
    case 'login':
    case 'code':
    case 'choice':
    case 'external':
    case 'passkey':
    case 'basic':
    case 'entry':
      return 'out';
    default:
      return 'nothing';
  }
}

/** The page offers a login and has no form of one. Applications do so too: for another account, for a service to connect. */
export const isOffer = ({ kind, fields, choices }: Reading) =>
  kind === 'entry' ||
  (kind === 'choice' && fields.length === 0 && choices.every(({ type }) => type === 'sso_provider'));

import { FormsError } from './browser.ts';
import { pageAddress } from './addresses.ts';
import { prepare } from '../reading/prepare.ts';
import { mostShown, pause, type Flow, type Look } from './flow.ts';
import { idAt } from './questions.ts';

/** A document may be replaced while it is looked at; the next look then sees the new one. */
const tries = 6;

/** Lets the page come to rest, follows popups, and reads what is there. */
export async function lookAt(flow: Flow, signal: AbortSignal, settleMs: number): Promise<Look> {
  for (let attempt = 1; ; attempt++) {
    try {
      await followPages(flow);
      await flow.browser.settled(flow.pageId, { deadlineMs: settleMs, signal });
      await followPages(flow);
      const look = await lookNow(flow);
      // A look that came too late must not take the place of a newer one.
      signal.throwIfAborted();
      flow.look = look;
      return look;
    } catch (error) {
      const passing = error instanceof FormsError && (error.fault === 'stale' || error.fault === 'page_gone');
      if (!passing || attempt === tries || signal.aborted) throw error;
      await pause(flow.deadlines.patience, signal);
    }
  }
}

/** Reads the page as it is. */
export async function lookNow(flow: Flow): Promise<Look> {
  const snapshot = await flow.browser.snapshot(flow.pageId);
  await prepare(snapshot);
  const whole = flow.read(snapshot, {
    domain: flow.input.connection.domain,
    ...(flow.before && { before: flow.before.snapshot }),
    ...(flow.submitted.length > 0 && { submitted: flow.submitted }),
  });
  // What is planned for them takes as long as there are fields and choices.
  const origins = new Map(snapshot.frames.flatMap(({ elements, origin }) => elements.map(({ ref }) => [ref, origin])));
  const located = <T extends { ref: string }>(those: readonly T[]): T[] =>
    those.slice(0, mostShown).map((one) => {
      const origin = origins.get(one.ref);
      return origin === undefined ? one : { ...one, origin };
    });
  // An id is made of the label where there is nothing better, and a label may repeat what was typed.
  const choices = located(whole.choices).map((choice, at) =>
    flow.secrets.text(choice.id) === choice.id ? choice : { ...choice, id: `${choice.type}_${at + 1}` },
  );
  const fields = located(whole.fields).map((field) => ({ ...field, id: idAt(flow, field) }));
  const reading = { ...whole, fields, choices };
  return { snapshot, reading, key: keyOf({ snapshot, reading }) };
}

/** What the page asks, on which page. */
export function keyOf({ snapshot, reading }: Pick<Look, 'snapshot' | 'reading'>): string {
  return JSON.stringify([
    reading.kind,
    pageAddress(snapshot.url),
    reading.fields.map(({ id, type }) => [id, type]),
    reading.choices.map(({ id }) => id),
    reading.next.map(({ why, label }) => [why, label]),
  ]);
}

/**
 * Identity providers often work in a window of their own, which closes when they are done. The flow goes into a window
 * that its page has opened since the last act, and back to the one that opened it when it is gone.
 */
async function followPages(flow: Flow): Promise<void> {
  const pages = await flow.browser.pages();
  const fresh = pages.filter(({ pageId }) => !flow.knownPages.has(pageId));
  const opened =
    fresh.findLast(({ opener }) => opener === flow.pageId) ??
    // A link with noopener opens a page that does not know where it came from.
    (flow.acted ? fresh.findLast(({ opener, url }) => opener === undefined && /^https?:/.test(url)) : undefined);
  if (opened) {
    flow.knownPages.add(opened.pageId);
    flow.pageId = opened.pageId;
    return;
  }
  if (pages.some(({ pageId }) => pageId === flow.pageId)) return;
  const left = pages.at(-1);
  if (!left) throw new FormsError('page_gone', 'Every page of the browser is closed.');
  flow.pageId = left.pageId;
}

/** Before an act: pages that are there now are not windows that the act opens. */
export async function rememberPages(flow: Flow): Promise<void> {
  flow.knownPages = new Set((await flow.browser.pages()).map(({ pageId }) => pageId));
  flow.acted = true;
}

import { prepare } from '../reading/prepare.ts';
import { pageAddress } from './addresses.ts';
import { isFrozen, isPassing } from './browser.ts';
import type { Flow } from './context.ts';
import { pause } from './pause.ts';
import { mostShown } from './report.ts';
import type { Look } from './types.ts';
import { prepareOptions } from './values.ts';

/** A document may be replaced while it is looked at; the next look then sees the new one. */
const tries = 6;

/** Asks a page again for as long as it computes and does not answer. */
export async function patiently<T>(flow: Flow, signal: AbortSignal, ask: () => Promise<T>): Promise<T> {
  for (const until = flow.now() + flow.deadlines.coming; ;) {
    try {
      return await ask();
    } catch (error) {
      if (!isFrozen(error) || flow.now() >= until || signal.aborted) throw error;
      await pause(flow.deadlines.patience, signal);
    }
  }
}

/** Waits until the page is at rest, follows popups, and reads the page. */
export async function lookAt(flow: Flow, signal: AbortSignal, settleMs: number): Promise<Look> {
  const { page, browser } = flow;
  for (let attempt = 1; ; attempt++) {
    try {
      await page.follow(browser);
      await browser.settled(page.id, { deadlineMs: settleMs, signal });
      await page.follow(browser);
      const look = await patiently(flow, signal, () => lookNow(flow));
      // A look that came too late must not take the place of a newer one.
      signal.throwIfAborted();
      page.show(look);
      return look;
    } catch (error) {
      if (!isPassing(error) || attempt === tries || signal.aborted) throw error;
      await pause(flow.deadlines.patience, signal);
    }
  }
}

/** Reads the page as it is. */
export async function lookNow(flow: Flow): Promise<Look> {
  const { before, submitted } = flow.attempt;
  const snapshot = await flow.browser.snapshot(flow.page.id);
  await prepare(snapshot);
  const whole = flow.read(snapshot, {
    domain: flow.input.connection.domain,
    ...(before && { before: before.snapshot }),
    ...(submitted.length > 0 && { submitted }),
  });
  // The time for planning grows with the number of fields and choices.
  const origins = new Map(snapshot.frames.flatMap(({ elements, origin }) => elements.map(({ ref }) => [ref, origin])));
  const located = <T extends { ref: string }>(those: readonly T[]): T[] =>
    those.slice(0, mostShown).map((one) => {
      const origin = origins.get(one.ref);
      return origin === undefined ? one : { ...one, origin };
    });
  // An id is made of the label where there is nothing better, and a label may repeat typed values.
  const choices = located(whole.choices).map((choice, at) =>
    flow.secrets.text(choice.id) === choice.id ? choice : { ...choice, id: `${choice.type}_${at + 1}` },
  );
  const fields = located(whole.fields).map((field) => ({ ...field, id: flow.person.idAt(field) }));
  await prepareOptions(fields);
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

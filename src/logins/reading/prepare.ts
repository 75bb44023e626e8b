import { choiceText } from './choices.ts';
import { page } from './page.ts';
import type { Snapshot } from './snapshot.ts';
import { learn, withWords, type LearnedWords } from './words/match.ts';

/** Does the part of a reading that grows with the words of a page, in pieces. The reading after it is short. */
export async function prepare(snapshot: Snapshot): Promise<void> {
  prepared.set(snapshot, await learn(wordsOf(snapshot)));
}

const prepared = new WeakMap<Snapshot, LearnedWords>();

/** Runs `work` with the words that these pages were prepared with. */
export function withPrepared<T>(snapshots: readonly (Snapshot | undefined)[], work: () => T): T {
  const words = snapshots.flatMap((one) => (one && prepared.get(one)) ?? []);
  return withWords(words, work);
}

function* wordsOf(snapshot: Snapshot): Generator<string> {
  const { items, hidden, texts } = page(snapshot);
  for (const { text } of texts) yield text;
  for (const item of [...items, ...hidden]) {
    yield item.label;
    yield item.says;
    yield item.el.near;
    yield item.el.description ?? '';
    yield choiceText(item);
  }
}

import { turns } from '../../lib/turns.ts';
import { exchanges } from './exchanges.ts';
import { harEntry } from './har-entry.ts';
import type { PageLoad } from './pages.ts';
import { msOf, type Keep, type StoredEvent } from './source.ts';

/** The categories that a HAR is made of. `monitor` says when the browser was started again. */
export const harCategories = ['network', 'page', 'monitor'] as const;

/** Text is handed on in pieces of about this many characters: one piece for each entry would cost more than the entry. */
const pieceLength = 64 * 1024;

/**
 * A HAR 1.2 document, in pieces. An entry is written when its answer is there, so memory holds the open requests and the
 * list of pages and no more. The pages come after the entries for that reason; the order of the fields is free in JSON.
 * The entries are in the order of their ends, which HAR allows.
 */
export async function* harDocument(
  events: AsyncIterable<StoredEvent>,
  about: { version: string; sessionId: string },
  keep?: Keep,
): AsyncGenerator<string> {
  const paired = exchanges();
  const creator = { name: 'Corral', version: about.version };
  const turn = turns();
  let piece = `{"log":{"version":"1.2","creator":${JSON.stringify(creator)},"entries":[`;
  let first = true;
  /** Adds the elements of a list, and yields complete pieces. There may be thousands of elements. */
  async function* listed(elements: Iterable<object>): AsyncGenerator<string> {
    for (const element of elements) {
      piece += (first ? '\n' : ',\n') + JSON.stringify(element);
      first = false;
      await turn();
      if (piece.length < pieceLength) continue;
      yield piece;
      piece = '';
    }
  }
  for await (const stored of events) {
    yield* listed(each(paired.take(stored), harEntry));
    await keep?.(paired.bytes());
    await turn();
  }
  yield* listed(each(paired.rest(), harEntry));
  piece += '],\n"pages":[';
  first = true;
  yield* listed(each(paired.pages, harPage));
  yield `${piece}],"comment":${JSON.stringify(commentOn(about.sessionId, paired.count))}}}\n`;
}

/** Made one by one: all of them together may be large. */
function* each<T>(list: Iterable<T>, make: (one: T) => object): Generator<object> {
  for (const one of list) yield make(one);
}

function harPage({ id, url, startedAt, contentLoadedAt, loadedAt }: PageLoad) {
  const since = (at: number | undefined) => (at === undefined ? -1 : Math.max(0, msOf(at - startedAt)));
  return {
    startedDateTime: new Date(msOf(startedAt)).toISOString(),
    id,
    title: url,
    pageTimings: { onContentLoad: since(contentLoadedAt), onLoad: since(loadedAt) },
  };
}

function commentOn(
  sessionId: string,
  { websockets, withoutData }: { websockets: number; withoutData: number },
): string {
  return [
    `Session ${sessionId}. Websockets are left out${websockets > 0 ? ` (${websockets} here)` : ''}.`,
    'Cookies and credentials are cut from the headers.',
    ...(withoutData > 0 ? [`${withoutData} network events were too large to keep.`] : []),
  ].join(' ');
}

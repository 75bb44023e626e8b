import { EventManager } from 'chromium-bidi/out/Default/gen/src/bidiMapper/modules/session/EventManager.js';
import { record } from '../../lib/shape.ts';

/** Console messages and exceptions of pages become log entries, of which the mapper keeps the last hundred of each context. */
const LOG_EVENTS: ReadonlySet<string> = new Set(['Runtime.consoleAPICalled', 'Runtime.exceptionThrown']);
const MOST_ARGUMENTS = 100;
/** Of all entries that one mapper keeps. */
const MOST_KEPT = 16 * 1024 * 1024;
/** What an entry takes besides its texts. */
const EACH = 1000;
const DROPPED = 'This entry was dropped: the entries that are kept have too many bytes.';

export function isLogEvent(method: string | undefined): boolean {
  return method !== undefined && LOG_EVENTS.has(method);
}

/** Drops the last of very many arguments. An entry that is cut begins with a note; `cut` is its size if its texts are cut. */
export function withNotes(params: Record<string, unknown>, cut: number | undefined): Record<string, unknown> {
  const { args } = params;
  if (!Array.isArray(args)) return params;
  const left = args.slice(0, MOST_ARGUMENTS);
  const notes: string[] = [];
  if (cut !== undefined) notes.push(`[A message of ${cut} bytes, cut]`);
  if (hasManyFormats(args[0])) notes.push('[A format of very many parts]');
  if (left.length < args.length) notes.push(`[${args.length - left.length} more arguments]`);
  // In front: a format in the first argument would no longer match the others, and the mapper would drop the entry.
  return { ...params, args: [...notes.map((value) => ({ type: 'string', value })), ...left] };
}

/** More than there can be arguments for. The mapper would split the text at them, which took 0.4 s for 520,000, and drop the entry. */
function hasManyFormats(first: unknown): boolean {
  const text = record(first) ? first['value'] : undefined;
  if (typeof text !== 'string') return false;
  let at = -1;
  for (let count = 0; count <= MOST_ARGUMENTS; count++) {
    at = text.indexOf('%', at + 1);
    if (at === -1) return false;
  }
  return true;
}

/** Replaces the answer to a command about an argument of an entry if the answer is too large or late. */
export function noted(text: string): Record<string, unknown> {
  return { result: { type: 'string', value: text, deepSerializedValue: { type: 'string', value: text } } };
}

/** The entries that a mapper keeps, the oldest first. */
class Kept {
  readonly #bytes = new Map<Record<string, unknown>, number>();
  #all = 0;

  add(entry: Record<string, unknown>): void {
    let bytes = EACH;
    try {
      bytes += JSON.stringify(entry).length;
    } catch {
      return drop(entry); // nested too deeply: it cannot be sent either
    }
    this.#bytes.set(entry, bytes);
    this.#all += bytes;
    for (const [oldest, bytes] of this.#bytes) {
      if (this.#all <= MOST_KEPT) return;
      this.#bytes.delete(oldest);
      this.#all -= bytes;
      drop(oldest);
    }
  }
}

/** The mapper still has the entry: what takes memory is removed from it. */
function drop(entry: Record<string, unknown>): void {
  entry['text'] = DROPPED;
  if (entry['args']) entry['args'] = [];
  delete entry['stackTrace'];
}

const kept = new WeakMap<EventManager, Kept>();
const register = EventManager.prototype.registerPromiseEvent;

/** The mapper has no option for a limit, so all entries that it keeps pass this function. */
EventManager.prototype.registerPromiseEvent = function registerBounded(event, contextId, name): void {
  if (name === 'log.entryAdded') {
    const entries = kept.get(this) ?? new Kept();
    kept.set(this, entries);
    const keep = (entry: Awaited<typeof event>) => {
      const value: unknown = 'value' in entry ? entry.value : undefined;
      if (record(value) && record(value['params'])) entries.add(value['params']);
    };
    // An entry that the mapper drops would be an unhandled rejection, and its message, with all texts of the page, would be in the log.
    event.then(keep, () => {});
  }
  register.call(this, event, contextId, name);
};

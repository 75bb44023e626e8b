/**
 * Work that is started now and awaited later. It has a handler from the start: if something else throws before it is awaited, its rejection
 * is not left unhandled. The `await` still gets the rejection. `scripts/lint/late-awaits.mjs` finds promises without such a handler.
 */
export function started<T>(work: Promise<T>): Promise<T> {
  work.catch(() => {});
  return work;
}

/**
 * Work that is begun now and awaited later. It has a handler from the start: if something else throws before it is awaited, its rejection is
 * not left unhandled. Who awaits it gets the rejection all the same.
 */
export function started<T>(work: Promise<T>): Promise<T> {
  work.catch(() => {});
  return work;
}

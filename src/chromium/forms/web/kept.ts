import { isConnected, ownerOf } from './dom.ts';

/** The elements of the last few looks. The service names one by the number of the look and its place in it. */
const kept = new Map<number, readonly (Element | undefined)[]>();
const MOST_LOOKS = 4;

export function keep(look: number, elements: readonly (Element | undefined)[]): void {
  kept.set(look, elements);
  for (const oldest of kept.keys()) {
    if (kept.size <= MOST_LOOKS) break;
    kept.delete(oldest);
  }
}

/** Undefined for an element that is no longer in the document. */
export function keptElement(look: number, index: number): Element | undefined {
  const element = kept.get(look)?.[index];
  return element && isConnected(element) && ownerOf(element) === document ? element : undefined;
}

import type { FrameWorld } from './frames.ts';
import { FormsError } from './types.ts';

/** An element that was read: the document it is in, and its place in the list that the document's world keeps. */
export interface Referred {
  readonly frame: FrameWorld;
  readonly look: number;
  readonly index: number;
}

/** More looks than the script keeps in one document: there may be several pages. */
const MOST_LOOKS = 12;

/** Gives names to elements. A name means nothing to the page, and the page cannot make one. */
export function references() {
  const byLook = new Map<number, FrameWorld[]>();
  let last = 0;

  return {
    nextLook(): number {
      last += 1;
      byLook.set(last, []);
      while (byLook.size > MOST_LOOKS) byLook.delete(byLook.keys().next().value!);
      return last;
    },
    /** Names for the elements of a frame in a look. */
    add(look: number, frame: FrameWorld, count: number): string[] {
      const frames = byLook.get(look) ?? [];
      frames.push(frame);
      return Array.from({ length: count }, (_, index) => `e${look}.${frames.length - 1}.${index}`);
    },
    get(ref: string): Referred {
      const [, look, place, index] = /^e(\d+)\.(\d+)\.(\d+)$/.exec(ref) ?? [];
      const frame = byLook.get(Number(look))?.[Number(place)];
      if (!frame) throw new FormsError('stale', 'The element is from an older snapshot: take a new one.');
      return { frame, look: Number(look), index: Number(index) };
    },
  };
}

export type References = ReturnType<typeof references>;

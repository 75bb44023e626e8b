import { MOST_PAGE_CHARACTERS, MOST_PAGE_ELEMENTS, MOST_PAGE_TEXTS } from './bounds.ts';
import type { LeftOut } from './types.ts';

interface FrameParts {
  readonly visible: boolean;
  readonly elements: readonly { readonly tag: string; readonly visible: boolean; readonly role?: string | undefined }[];
  readonly texts: readonly { readonly visible: boolean; readonly text: string }[];
}

/** The places of the kept elements, for each frame and in document order. */
export interface Kept {
  readonly elements: number[];
  readonly texts: number[];
}

/**
 * Selects the elements that are read of a page with too many. Fields come first, then buttons, then other visible elements, then
 * hidden ones; of each kind, those of the first frames.
 */
export function selectParts(frames: readonly FrameParts[]): { kept: Kept[]; leftOut: LeftOut | undefined } {
  const kept = frames.map((): Kept => ({ elements: [], texts: [] }));
  let room = MOST_PAGE_CHARACTERS;
  const choose = (of: 'elements' | 'texts', most: number, rankOf: (one: never) => number): number => {
    const all = frames.flatMap((frame, at) =>
      frame[of].map((one, place) => ({ one, at, place, rank: frame.visible ? rankOf(one as never) : hidden })),
    );
    all.sort((a, b) => a.rank - b.rank);
    let left = most;
    for (const { one, at, place } of all) {
      if (left === 0) break;
      const characters = charactersIn(one);
      if (characters > room) continue;
      room -= characters;
      left--;
      kept[at]![of].push(place);
    }
    for (const each of kept) each[of].sort((a, b) => a - b);
    return all.length - (most - left);
  };
  // Texts have their own bound of characters: a third of all is left to them.
  const forTexts = Math.floor(room / 3);
  room -= forTexts;
  const elements = choose('elements', MOST_PAGE_ELEMENTS, rankOfElement);
  room += forTexts;
  const texts = choose('texts', MOST_PAGE_TEXTS, ({ visible }: FrameParts['texts'][number]) => (visible ? 0 : hidden));
  return { kept, leftOut: elements + texts > 0 ? { elements, texts } : undefined };
}

const hidden = 3;

function rankOfElement({ visible, tag, role }: FrameParts['elements'][number]): number {
  if (!visible) return hidden;
  if (tag === 'input' || tag === 'select' || tag === 'textarea') return 0;
  return tag === 'button' || role === 'button' ? 1 : 2;
}

function charactersIn(value: unknown): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 0;
  let sum = 0;
  for (const each of Object.values(value)) sum += charactersIn(each);
  return sum;
}

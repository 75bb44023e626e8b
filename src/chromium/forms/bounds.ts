/** The most of each kind that a frame may report. */
export const MOST_ELEMENTS = 400;
export const MOST_TEXTS = 400;
export const MOST_OPTIONS = 100;
/** Characters of a text, and of the text near a field. */
export const MOST_TEXT = 300;
export const MOST_NEAR = 200;
/** Characters of a frame's elements, as JSON. */
export const MOST_FRAME_CHARACTERS = 400_000;
/** Frames of a page. */
export const MOST_FRAMES = 20;
/** The most of each kind that a page may report, over all of its frames. It is read in one piece of work. */
export const MOST_PAGE_ELEMENTS = 500;
export const MOST_PAGE_TEXTS = 500;
export const MOST_PAGE_CHARACTERS = 400_000;

/** How long is waited for a page, in milliseconds. */
export interface Patience {
  /** For the main frame to be read, and for another one. A frame that is late is left out. */
  readonly main: number;
  readonly frame: number;
  /** For one step of an act. */
  readonly step: number;
  /** For an element that moves about, is covered or is disabled. */
  readonly reach: number;
}
export const usual: Patience = { main: 10_000, frame: 2500, step: 5000, reach: 3000 };

import {
  flag,
  integer,
  list,
  number,
  object,
  oneOf,
  optional,
  text,
  type Check,
  type Checked,
} from '../../lib/shape.ts';
import { MOST_ELEMENTS, MOST_NEAR, MOST_OPTIONS, MOST_TEXT, MOST_TEXTS } from './bounds.ts';

/**
 * The functions that the service calls in pages (web/page.ts), by world-calls.ts. `look` and `index` name an element: the number of the
 * look that found it, and its place there.
 */
export interface FormsCalls {
  /** Reads the document, and keeps its elements under this number. */
  look(number: number): Look;
  /** How many usable elements each selector names, at most two. The first element of each is kept under the number. */
  find(number: number, selectors: readonly string[]): number[];
  /** Scrolls an element into view. Returns where to click, or why not. */
  aim(look: number, index: number): Aim;
  focused(look: number, index: number): boolean;
  focus(look: number, index: number): boolean;
  /** How much of a text of this length the element has. The text is no argument: clients of the session can read scripts. */
  holds(look: number, index: number, length: number): 'all' | 'part' | 'nothing';
  /**
   * Edits as the keyboard does, in this document and at this moment. A key is sent to the element that has the focus when it arrives,
   * which may be in a frame of another site by then; this call reaches the element or nothing.
   */
  insert(look: number, index: number, text: string): 'done' | 'stale' | 'lost';
  empty(look: number, index: number): 'done' | 'stale' | 'lost';
  /** Sets the value of an input with a picker, which takes no text by an edit. Returns `text` for every other element. */
  put(look: number, index: number, text: string): 'done' | 'stale' | 'disabled' | 'unfit' | 'text';
  /** Chooses the option of a select with this value. */
  choose(look: number, index: number, value: string): 'done' | 'stale' | 'disabled' | 'unfit';
  checkedness(look: number, index: number): 'on' | 'off' | 'stale' | 'unfit';
  /** How long the document has not changed, in milliseconds. With `fresh`, the counts of nodes that change all the time are reset. */
  stillSince(fresh: boolean): { still: number; state: DocumentState };
  storage(seed: number): { origin: string; keys: number; hash: number };
  /** The place of a frame's content in the document that shows it, and whether it is shown at all. */
  framePlace(frame: object): Checked<typeof isPlace>;
  /**
   * Where a frame's content is in the viewport of the document that shows it, and whether a click at this point of the frame reaches the
   * frame. Scrolls the point into view first.
   */
  frameShift(frame: object, x: number, y: number): Checked<typeof isShift>;
}

type DocumentState = 'loading' | 'interactive' | 'complete';
export type Look = Checked<typeof isLook>;
export type SeenElement = Checked<typeof isElement>;
export type SeenText = Checked<typeof isText>;
type Aim = Checked<typeof isAim>;

const coordinate = number(-1e9, 1e9);
const inViewport = number(-1e7, 1e7);
const isBox = object({ x: coordinate, y: coordinate, width: number(0, 1e9), height: number(0, 1e9) });
const atMost = <T>(most: number, item: Check<T>): Check<T[]> => {
  const isList = list(item);
  return (value): value is T[] => isList(value) && value.length <= most;
};
const short = text(200);

const isElement = object({
  tag: text(40),
  type: optional(text(40)),
  name: optional(short),
  id: optional(short),
  autocomplete: optional(short),
  role: optional(short),
  accessibleName: optional(short),
  labels: atMost(5, short),
  placeholder: optional(short),
  title: optional(short),
  description: optional(short),
  filled: flag,
  options: optional(atMost(MOST_OPTIONS, object({ label: text(100), value: short, selected: flag }))),
  checked: optional(flag),
  inputmode: optional(short),
  maxlength: optional(integer(0, 1e6)),
  pattern: optional(short),
  required: flag,
  disabled: flag,
  readonly: flag,
  visible: flag,
  inViewport: flag,
  covered: optional(flag),
  box: isBox,
  formKey: optional(text(20)),
  href: optional(text(500)),
  near: text(MOST_NEAR),
  inDialog: flag,
  classes: short,
  expanded: optional(flag),
  selected: optional(flag),
  pressed: optional(flag),
  invalid: optional(flag),
  focused: optional(flag),
  selectors: atMost(8, text(500)),
});
const isText = object({
  text: text(MOST_TEXT),
  box: isBox,
  tag: optional(text(40)),
  role: optional(short),
  classes: short,
  id: optional(short),
  inDialog: flag,
  live: flag,
  visible: flag,
  formKey: optional(text(20)),
  heading: optional(flag),
  label: optional(flag),
});
const isState = oneOf('loading', 'interactive', 'complete');
const isLook = object({
  url: text(2000),
  origin: text(300),
  title: text(300),
  lang: optional(text(40)),
  state: isState,
  elements: atMost(MOST_ELEMENTS, isElement),
  texts: atMost(MOST_TEXTS, isText),
  truncated: flag,
});
const isAim = object({
  x: optional(inViewport),
  y: optional(inViewport),
  why: optional(oneOf('stale', 'disabled', 'hidden', 'covered')),
});
const isPlace = object({ x: coordinate, y: coordinate, width: coordinate, height: coordinate, shown: flag });
const isShift = object({ x: inViewport, y: inViewport, hit: flag });
const isEdited = oneOf('done', 'stale', 'lost');

/** What each function may return. They run on data of a page that may be hostile, in a browser that may be compromised. */
export const returned: { [Name in keyof FormsCalls]: Check<ReturnType<FormsCalls[Name]>> } = {
  look: isLook,
  find: list(integer(0, 2)),
  aim: isAim,
  focused: flag,
  focus: flag,
  holds: oneOf('all', 'part', 'nothing'),
  insert: isEdited,
  empty: isEdited,
  put: oneOf('done', 'stale', 'disabled', 'unfit', 'text'),
  choose: oneOf('done', 'stale', 'disabled', 'unfit'),
  checkedness: oneOf('on', 'off', 'stale', 'unfit'),
  stillSince: object({ still: number(0, 1e12), state: isState }),
  storage: object({ origin: text(300), keys: number(0, 10_000), hash: number(0, 2 ** 32) }),
  framePlace: isPlace,
  frameShift: isShift,
};

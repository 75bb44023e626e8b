import { flag, integer, number, oneOf, text, type Check, type Checked } from '../../lib/shape.ts';

/**
 * What a viewer of the screencast may say. Whatever comes is taken for hostile: a message that is not exactly one of
 * these is no message.
 */

type Fields<S> = { readonly [F in keyof S]: Checked<S[F]> };

/** Alt 1, Control 2, Meta 4, Shift 8, as CDP counts them. */
const modifiers = integer(0, 15);
/** In CSS pixels of the page. Dragging may lead outside. */
const coordinate = number(-100_000, 100_000);
const MAX_TEXT = 1024 * 1024;

const shapes = {
  /** A frame was drawn. */
  ack: {},
  /** How many pixels the viewer has for the picture. */
  size: { width: integer(1, 16_384), height: integer(1, 16_384) },
  mouse: {
    event: oneOf('move', 'down', 'up'),
    x: coordinate,
    y: coordinate,
    button: oneOf('none', 'left', 'middle', 'right', 'back', 'forward'),
    buttons: integer(0, 31),
    clickCount: integer(0, 10),
    modifiers,
  },
  wheel: { x: coordinate, y: coordinate, deltaX: coordinate, deltaY: coordinate, modifiers },
  key: {
    event: oneOf('down', 'up'),
    key: text(32),
    code: text(32),
    /** What the key writes in the layout of whoever pressed it, or nothing. */
    text: text(16),
    keyCode: integer(0, 65_535),
    location: integer(0, 3),
    repeat: flag,
    modifiers,
  },
  /** Text with no key of its own: a dead key's, an input method's, a phone's. It ends a composition. */
  text: { text: text(MAX_TEXT) },
  /** The text of an input method that may still change. */
  compose: { text: text(1000) },
  paste: { text: text(MAX_TEXT) },
  /** Asks for what copying copies. */
  copy: { cut: flag },
  newTab: {},
  selectTab: { id: text(64) },
  closeTab: { id: text(64) },
  navigate: { address: text(16_384) },
  history: { to: oneOf('back', 'forward', 'reload', 'stop') },
  /** The answer to a dialog of the page. */
  answer: { accept: flag, text: text(10_000) },
} satisfies Record<string, Record<string, Check<unknown>>>;

type Shapes = typeof shapes;
export type ViewerMessage = { [T in keyof Shapes]: { readonly type: T } & Fields<Shapes[T]> }[keyof Shapes];

/** What hands do to a page. The order they do it in matters. */
export type InputMessage = Extract<
  ViewerMessage,
  { type: 'mouse' | 'wheel' | 'key' | 'text' | 'compose' | 'paste' | 'copy' }
>;

/** What the viewer said, or undefined if it is nothing a viewer says. */
export function readViewerMessage(data: Buffer): ViewerMessage | undefined {
  let value: unknown;
  try {
    value = JSON.parse(data.toString());
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null || !('type' in value)) return undefined;
  const { type } = value;
  if (typeof type !== 'string' || !Object.hasOwn(shapes, type)) return undefined;
  const fields: Record<string, Check<unknown>> = shapes[type as keyof Shapes];
  const given = new Map<string, unknown>(Object.entries(value));
  const fits = Object.entries(fields).every(([name, check]) => check(given.get(name)));
  return fits ? (value as ViewerMessage) : undefined;
}

/** Those that change nothing but what this viewer sees. */
const watching = new Set<ViewerMessage['type']>(['ack', 'size', 'selectTab']);

export function onlyWatches({ type }: ViewerMessage): boolean {
  return watching.has(type);
}

/**
 * The URL that somebody means who writes `text` into an address bar; undefined if there is none. Of the schemes only those
 * that a person needs: `javascript:` and `file:` are for those who drive the session over CDP.
 */
export function addressOf(text: string): string | undefined {
  const trimmed = text.trim();
  if (/^(about:blank$|data:)/i.test(trimmed)) return trimmed;
  const local = /^(localhost|[\w-]+(\.[\w-]+)*\.localhost|\d+\.\d+\.\d+\.\d+|\[[\da-f:]+\])(:\d+)?([/?#]|$)/i.test(
    trimmed,
  );
  const hasScheme = /^[a-z][a-z\d+.-]*:/i.test(trimmed) && !/^[^/?#]+:\d+([/?#]|$)/.test(trimmed);
  const candidate = hasScheme ? trimmed : `${local ? 'http' : 'https'}://${trimmed}`;
  if (!URL.canParse(candidate)) return undefined;
  const { href, protocol, hostname } = new URL(candidate);
  if (protocol !== 'http:' && protocol !== 'https:') return undefined;
  return hasScheme || local || hostname.includes('.') || /:\d+([/?#]|$)/.test(trimmed) ? href : undefined;
}

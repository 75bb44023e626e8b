import { isLight } from '../../lib/json-weight.ts';
import { flag, integer, list, number, object, oneOf, text, type Check, type Checked } from '../../lib/shape.ts';

/** The messages of a screencast's viewer. They are not trusted: a message that is not exactly one of these is refused. */

type Fields<S> = { readonly [F in keyof S]: Checked<S[F]> };

/** CDP's modifiers: Alt 1, Control 2, Meta 4, Shift 8. */
const modifiers = integer(0, 15);
/** In CSS pixels of the page. A drag may leave the page. */
const coordinate = number(-100_000, 100_000);
const MAX_TEXT = 1024 * 1024;

const isFile = object({ name: text(255), size: integer(0, 2 ** 40) });
type File = Checked<typeof isFile>;
const someFiles: Check<File[]> = (value): value is File[] => list(isFile)(value) && value.length <= 1000;

const shapes = {
  /** The viewer has drawn a frame; of a display, it has read a mark. */
  ack: {},
  /** The size of the picture in the viewer, in pixels. */
  size: { width: integer(1, 16_384), height: integer(1, 16_384) },
  /** The size that the session's viewport is to have, in CSS pixels. */
  fit: { width: integer(1, 8192), height: integer(1, 8192) },
  /** What its pictures are to take: of the network, and of the browser. */
  quality: { level: oneOf('auto', 'high', 'medium', 'low') },
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
    /** The text that the key writes in the viewer's keyboard layout, if any. */
    text: text(16),
    keyCode: integer(0, 65_535),
    location: integer(0, 3),
    repeat: flag,
    modifiers,
  },
  /** Text without a key: from a dead key, an input method or a phone. It ends a composition. */
  text: { text: text(MAX_TEXT) },
  /** Unfinished text of an input method. */
  compose: { text: text(1000) },
  paste: { text: text(MAX_TEXT) },
  /** Requests the text that copying gives. */
  copy: { cut: flag },
  /** The choice in a popup that the viewer draws, by the number of the popup. */
  choose: { id: integer(1, 2 ** 31), index: integer(0, 100_000) },
  setValue: { id: integer(1, 2 ** 31), value: text(1000) },
  dismiss: { id: integer(1, 2 ** 31) },
  /** Files for the control that asked for them, by its number, or dropped at a place: then it is 0. Their bytes follow, one after the other. */
  offerFiles: { chooser: integer(0, 2 ** 31), x: coordinate, y: coordinate, files: someFiles },
  /** In base64. */
  fileBytes: { data: text(512 * 1024) },
  noFiles: { chooser: integer(0, 2 ** 31) },
  /** Requests the list of what the session has downloaded. */
  downloads: {},
  save: { name: text(1024) },
  newTab: {},
  openTab: { address: text(16_384) },
  selectTab: { id: text(64) },
  closeTab: { id: text(64) },
  /** Whether to show the tab that the session's driver made or brought to the front last, or to stay on this one. */
  follow: { on: flag },
  navigate: { address: text(16_384) },
  history: { to: oneOf('back', 'forward', 'reload', 'stop') },
  /** The answer to a dialog of the page. */
  answer: { accept: flag, text: text(10_000) },
} satisfies Record<string, Record<string, Check<unknown>>>;

type Shapes = typeof shapes;
export type ViewerMessage = { [T in keyof Shapes]: { readonly type: T } & Fields<Shapes[T]> }[keyof Shapes];

/** Mouse, keyboard and clipboard input, whose order matters. */
export type InputMessage = Extract<
  ViewerMessage,
  { type: 'mouse' | 'wheel' | 'key' | 'text' | 'compose' | 'paste' | 'copy' }
>;

const aboutFiles = ['offerFiles', 'fileBytes', 'noFiles', 'downloads', 'save'] as const;
export type FilesMessage = Extract<ViewerMessage, { type: (typeof aboutFiles)[number] }>;

export function isAboutFiles(message: ViewerMessage): message is FilesMessage {
  return aboutFiles.some((type) => type === message.type);
}

/** The size limit of a message to a viewer, or from it. */
export const MAX_MESSAGE = 1024 * 1024 + 1024;
/** The messages of a viewer that only watches are a few numbers, or the id of a tab. */
const MAX_WATCHING = 1024;
/** A thousand files with 2 fields, which are the most values of a message. */
const MOST_WEIGHT = 6000;
/** Several times what a fast mouse and a fast typist produce together. */
const MAX_MESSAGES_A_SECOND = 1000;

/** Why a viewer's connection has to be closed for a message; undefined if it need not be. To be called for each message, before it is read. */
export function viewerBounds(): (data: Buffer) => { code: number; reason: string } | undefined {
  let second = 0;
  let count = 0;
  return ({ length }) => {
    if (length > MAX_MESSAGE) return { code: 1009, reason: 'That message is too large.' };
    const now = Math.floor(Date.now() / 1000);
    if (second !== now) [second, count] = [now, 0];
    count += 1;
    return count > MAX_MESSAGES_A_SECOND ? { code: 1008, reason: 'Too many messages in a second.' } : undefined;
  };
}

/** The viewer's message, or undefined if it is not valid, or not for a viewer that only watches. */
export function readViewerMessage(data: Buffer, readOnly = false): ViewerMessage | undefined {
  if (readOnly && data.length > MAX_WATCHING) return undefined;
  const message = isLight(data, MOST_WEIGHT) ? parsed(data) : undefined;
  return message && readOnly && !onlyWatches(message) ? undefined : message;
}

function parsed(data: Buffer): ViewerMessage | undefined {
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

/** Messages that change only what this viewer sees. */
const watching = new Set<ViewerMessage['type']>(['ack', 'size', 'quality', 'selectTab', 'follow']);

function onlyWatches({ type }: ViewerMessage): boolean {
  return watching.has(type);
}

/**
 * The URL that a person means who types `text` into an address bar; undefined if there is none. Only the schemes that a person needs:
 * `javascript:` and `file:` are left to clients that drive the session over CDP.
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

/**
 * Where to go for what a person types into an address bar: an address, or the words in a search engine, whose URL has `%s` in the place
 * of the words. A text with a scheme that is not for viewers is not searched for. Undefined if there is nowhere to go.
 */
export function destinationOf(text: string, searchUrl: string): string | undefined {
  const address = addressOf(text);
  const words = text.trim();
  if (address !== undefined || searchUrl === '' || words === '' || /^[a-z][a-z\d+.-]*:\S/i.test(words)) return address;
  // Half a character, which JSON may contain, cannot be encoded: a buffer replaces it.
  return searchUrl.replaceAll('%s', () => encodeURIComponent(Buffer.from(words).toString()));
}

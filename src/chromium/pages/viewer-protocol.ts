import { flag, integer, list, number, object, oneOf, text, type Check, type Checked } from '../../lib/shape.ts';
import type { Level } from './cast-levels.ts';

/**
 * The messages between the service and the live view's page (sessions/live-view/web/), in both directions. Both ends import them, so this
 * module uses nothing of Node.
 */

// From the viewer to the service

type Fields<S> = { readonly [F in keyof S]: Checked<S[F]> };

/** CDP's modifiers: Alt 1, Control 2, Meta 4, Shift 8. */
const modifiers = integer(0, 15);
/** In CSS pixels of the page. A drag may leave the page. */
const coordinate = number(-100_000, 100_000);
const MAX_TEXT = 1024 * 1024;

const isFile = object({ name: text(255), size: integer(0, 2 ** 40) });
type File = Checked<typeof isFile>;
const someFiles: Check<File[]> = (value): value is File[] => list(isFile)(value) && value.length <= 1000;

/** They are not trusted: a message that is not exactly one of these is refused (viewer-messages.ts). */
export const shapes = {
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
  /** Requests the list of downloads of the session. */
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

export type Shapes = typeof shapes;
/** The message of this type. */
export type ViewerMessageOf<T extends keyof Shapes> = { [K in T]: { readonly type: K } & Fields<Shapes[K]> }[T];
export type ViewerMessage = ViewerMessageOf<keyof Shapes>;

/** Mouse, keyboard and clipboard input, in order. */
export type InputMessage = ViewerMessageOf<'mouse' | 'wheel' | 'key' | 'text' | 'compose' | 'paste' | 'copy'>;

export const aboutFiles = ['offerFiles', 'fileBytes', 'noFiles', 'downloads', 'save'] as const;
export type FilesMessage = ViewerMessageOf<(typeof aboutFiles)[number]>;

// From the service to the viewer

/** The JSON messages to a viewer of the screencast. Pictures are binary messages, each a JPEG. */
export type ViewMessage =
  | { type: 'hello'; readOnly: boolean }
  /** `shown` is the tab in the pictures, or null when there is none. */
  | { type: 'tabs'; tabs: readonly TabInfo[]; shown: string | null }
  /** The page's size in CSS pixels, the unit of mouse coordinates. Sent before the first picture of that size. */
  | { type: 'viewport'; width: number; height: number }
  | { type: 'page'; loading: boolean; canGoBack: boolean; canGoForward: boolean }
  | { type: 'dialog'; kind: string; message: string; defaultText: string }
  | { type: 'dialogClosed' }
  | { type: 'crashed' }
  /** A popup of a control, which the pictures do not contain. Its place is in CSS pixels of the page. */
  | { type: 'popup'; id: number; popup: Popup }
  | { type: 'popupClosed' }
  /** The right-clicked element, in a page without a menu of its own. */
  | ({ type: 'menu'; x: number; y: number } & Clicked)
  | { type: 'clipboard'; text: string }
  | FileMessage
  /** A sentence to show to the person. */
  | { type: 'notice'; text: string };

export type ViewMessageOf<T extends ViewMessage['type']> = Extract<ViewMessage, { type: T }>;

export interface TabInfo {
  readonly id: string;
  readonly title: string;
  readonly url: string;
}

/** The JSON messages to a viewer of a display. The display's own bytes are binary messages. */
export type DisplayMessage = { type: 'title'; title: string } | LevelMessage | FileMessage;

/** `level` is the quality of the display's pictures; the viewer answers a `mark` when it has read all that was sent before. */
export type LevelMessage = { type: 'level'; level: Level } | { type: 'mark' };

/** The JSON messages about files to a viewer. */
export type FileMessage =
  /** The page asks for files. */
  | { type: 'chooser'; id: number; multiple: boolean }
  /** A part of an upload is written: send another one. */
  | { type: 'more' }
  | { type: 'filesDone'; problem: string }
  | { type: 'downloads'; files: readonly { name: string; size: number }[]; problem: string }
  | { type: 'saving'; name: string; size: number }
  | { type: 'saveBytes'; data: string }
  | { type: 'saved'; problem: string };

/** A popup that is open in the page, as the viewer draws it. The texts are the page's. */
export type Popup = Box &
  (
    | { readonly kind: 'select'; readonly selected: number; readonly options: readonly PopupOption[] }
    /** The suggestions of a text field. */
    | { readonly kind: 'suggest'; readonly options: readonly PopupOption[] }
    | {
        readonly kind: 'value';
        readonly input: ValueInput;
        readonly value: string;
        readonly min: string;
        readonly max: string;
        readonly step: string;
      }
  );

/** Types of inputs with a popup to choose the value. */
export const VALUE_INPUTS = ['date', 'month', 'week', 'time', 'datetime-local', 'color'] as const;
export type ValueInput = (typeof VALUE_INPUTS)[number];

export interface PopupOption {
  readonly label: string;
  readonly value: string;
  readonly group: string;
  readonly disabled: boolean;
  readonly hidden: boolean;
}

/** In CSS pixels of the page. */
export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** The right-clicked element. */
export interface Clicked {
  readonly link: string;
  readonly selected: boolean;
  readonly editable: boolean;
}

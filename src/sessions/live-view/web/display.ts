/** The view of a headful session: its display, over VNC, with noVNC. */
/*! Contains noVNC, Copyright The noVNC authors, MPL 2.0: https://github.com/novnc/noVNC */
import Keyboard from '@novnc/novnc/core/input/keyboard.js';
import KeyTable from '@novnc/novnc/core/input/keysym.js';
import RFB from '@novnc/novnc/core/rfb.js';
import { isTypeable, keysymOf } from '../../../chromium/display/characters.ts';
import type { Level } from '../../../chromium/pages/cast-levels.ts';
import type { DisplayMessage } from '../../../chromium/pages/viewer-protocol.ts';
import { $ } from './elements.ts';
import { fileBox } from './files.ts';
import { fingers } from './fingers.ts';
import { followFrame } from './frame.ts';
import { belongsToText, isMac, isShortcut, readText } from './keyboard.ts';
import { partsOf, type MakeView } from './parts.ts';
import { picturePanel } from './picture-panel.ts';
import { softKeyboard } from './soft-keyboard.ts';
import { view } from './view.ts';
import { zoomer } from './zoom.ts';

/** noVNC's levels, from 0 to 9: of its pictures, and of how hard the display compresses. `least` is only chosen by the service. */
const QUALITY: Record<Level, readonly [quality: number, compression: number]> = {
  high: [8, 2],
  medium: [5, 4],
  low: [1, 6],
  least: [0, 9],
};

const display: MakeView = (socket, ui, signal) => {
  const { readOnly } = ui;
  const parts = partsOf(socket, ui, signal);
  const { send, listen, focus } = parts;
  const target = $('display');
  const field = $('keyboard');
  target.replaceChildren();
  target.hidden = false;

  // The display's bytes are binary messages, the rest is text. Runs before noVNC's own listener, which takes every message for the display's.
  let files: ReturnType<typeof fileBox> | undefined;
  /** What the service thinks that the connection can take. */
  let followed: Level = 'high';
  socket.addEventListener('message', (event) => {
    if (typeof event.data !== 'string') return;
    event.stopImmediatePropagation();
    hear(JSON.parse(event.data) as DisplayMessage);
  });

  function hear(message: DisplayMessage): void {
    switch (message.type) {
      case 'mark':
        return send({ type: 'ack' });
      case 'level':
        followed = message.level;
        return draw();
      case 'title':
        return ui.pageTitle(message.title);
      case 'chooser':
      case 'more':
      case 'filesDone':
      case 'downloads':
      case 'saving':
      case 'saveBytes':
      case 'saved':
        return files?.hear(message);
      default:
        message satisfies never; // a node of another version may send more
    }
  }

  const rfb = new RFB(target, socket, { shared: true });
  rfb.scaleViewport = true;
  rfb.viewOnly = readOnly;
  rfb.focusOnClick = false; // the text field receives the keys
  rfb.background = 'transparent';
  rfb.addEventListener('connect', () => {
    zoom.refit();
    ui.connected();
  });
  rfb.addEventListener('clipboard', ({ detail }) => void ui.clipboard.receive(detail.text));

  const zoom = zoomer({ listen, content: target, grow, actualScale, oneFingerMoves: readOnly });
  const { quality } = picturePanel({ listen, focus, onSize: zoom.show, onQuality: draw });
  draw();
  fingers({ target, listen, zoom, readOnly });
  const resized = new ResizeObserver(() => zoom.refit());
  resized.observe($('stage'));
  signal.addEventListener('abort', () => resized.disconnect());
  if (readOnly) return;

  followFrame(parts, socket);
  softKeyboard(parts);
  files = fileBox({ ...parts, at });
  listen(target, 'mousedown', focus, { capture: true });
  listen(target, 'touchend', focus, { capture: true });

  // Runs before noVNC's own listeners, which take every key away from the text field.
  listen(field, 'keydown', before);
  listen(field, 'keyup', before);
  const keyboard = new Keyboard(field);
  keyboard.onkeyevent = (keysym, code, down) => rfb.sendKey(keysym, code, down);
  keyboard.grab();
  signal.addEventListener('abort', () => keyboard.ungrab());

  function draw(): void {
    const chosen = quality();
    [rfb.qualityLevel, rfb.compressionLevel] = QUALITY[chosen === 'auto' ? followed : chosen];
  }

  /** noVNC scales the display to its container. */
  function grow(scale: number): void {
    target.style.width = target.style.height = `${scale * 100}%`;
  }

  /** The canvas of noVNC, which it makes at once. */
  function canvas(): HTMLCanvasElement {
    return target.querySelector('canvas')!;
  }

  function actualScale(): number {
    const { width, height } = canvas();
    const { clientWidth, clientHeight } = $('stage');
    return Math.max(1, width / clientWidth, height / clientHeight);
  }

  /** Where on the display an event happened. */
  function at({ clientX, clientY }: MouseEvent) {
    const { width, height } = canvas();
    const box = canvas().getBoundingClientRect();
    return { x: ((clientX - box.left) / box.width) * width, y: ((clientY - box.top) / box.height) * height };
  }

  let controlHeld = false;

  function before(event: KeyboardEvent): void {
    controlHeld = event.ctrlKey;
    const leave = belongsToText(event) || ['F11', 'F12'].includes(event.key) || isShortcut(event, 'v');
    const command = isMac && event.type === 'keydown' && isShortcut(event, 'a', 'c', 'x', 'z');
    const letter = isLetter(event);
    if (!leave && !command && !letter) return;
    event.stopImmediatePropagation();
    if (leave) return;
    event.preventDefault();
    if (command) shortcut(event.key.toLowerCase());
    else if (event.type === 'keydown') write(event.key);
  }

  /** Control and a letter. A Mac's Command was sent to the session as Alt, and is released first. */
  function shortcut(letter: string): void {
    if (isMac) rfb.sendKey(KeyTable.XK_Alt_L, 'MetaLeft', false);
    const held = controlHeld && !isMac;
    if (!held) rfb.sendKey(KeyTable.XK_Control_L, 'ControlLeft', true);
    rfb.sendKey(letter.charCodeAt(0), `Key${letter.toUpperCase()}`);
    if (!held) rfb.sendKey(KeyTable.XK_Control_L, 'ControlLeft', false);
  }

  function paste(text: string): void {
    if (!text) return;
    rfb.clipboardPasteFrom(text);
    shortcut('v');
  }

  /** Sends text as keys if the display has a key for each character; otherwise as a paste. */
  function write(text: string): void {
    const characters = Array.from(text.replaceAll('\r\n', '\n'));
    if (!characters.every(hasKey)) return paste(text);
    for (const character of characters) {
      rfb.sendKey(character === '\n' ? KeyTable.XK_Return : keysymOf(character.codePointAt(0)!), null);
    }
  }

  const nothing = () => {}; // the display cannot show text that is still being composed
  const erase = () => rfb.sendKey(KeyTable.XK_BackSpace, 'Backspace');
  readText(field, { text: write, compose: nothing, paste, erase }, signal);
  ui.clipboard.onPaste = paste;
  focus();
};

/** Whether a key writes a letter that an American keyboard lacks. The session's own modifiers must not interfere with it. */
function isLetter(event: KeyboardEvent): boolean {
  const plain = event.getModifierState('AltGraph') || (!event.ctrlKey && !event.metaKey && (!event.altKey || isMac));
  return plain && Array.from(event.key).length === 1 && event.key > '~';
}

/** Tabs and carriage returns have keys too, but their keysyms do not follow from their code points. */
function hasKey(character: string): boolean {
  return isTypeable(character) && character !== '\t' && character !== '\r';
}

view(display);

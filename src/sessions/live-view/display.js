/** The view of a headful session: its display, over VNC, with noVNC. */
import RFB from './novnc/core/rfb.js';
import Keyboard from './novnc/core/input/keyboard.js';
import KeyTable from './novnc/core/input/keysym.js';
import { fileBox } from './files.js';
import { fingers } from './fingers.js';
import { followFrame } from './frame.js';
import { picturePanel } from './picture-panel.js';
import { softKeyboard } from './soft-keyboard.js';
import { belongsToText, isMac, isShortcut, readText } from './keyboard.js';
import { zoomer } from './zoom.js';

/** noVNC's levels, from 0 to 9: of its pictures, and of how hard the display compresses. `least` is only chosen by the service. */
const QUALITY = { high: [8, 2], medium: [5, 4], low: [1, 6], least: [0, 9] };

export function display(socket, ui, signal) {
  const { $, readOnly } = ui;
  const target = $('display');
  const field = $('keyboard');
  target.replaceChildren();
  target.hidden = false;

  // The display's bytes are binary messages, the rest is text. Runs before noVNC's own listener, which takes every message for the display's.
  let files;
  const send = (message) => socket.readyState === WebSocket.OPEN && socket.send(JSON.stringify(message));
  /** What the service thinks that the connection can take. */
  let followed = 'high';
  const hearers = {
    mark: () => send({ type: 'ack' }),
    level({ level }) {
      followed = level;
      draw();
    },
    title: ({ title }) => ui.pageTitle(title),
  };
  socket.addEventListener('message', (event) => {
    if (typeof event.data !== 'string') return;
    event.stopImmediatePropagation();
    const message = JSON.parse(event.data);
    if (files && Object.hasOwn(files, message.type)) files[message.type](message);
    else if (Object.hasOwn(hearers, message.type)) hearers[message.type](message);
  });

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
  signal.addEventListener('abort', () => keyboard?.ungrab());

  let keyboard;
  const listen = (on, name, listener, options) => on.addEventListener(name, listener, { signal, ...options });
  const focus = () => field.focus({ preventScroll: true });
  const zoom = zoomer({ $, listen, content: target, grow, actualScale, oneFingerMoves: readOnly });
  const { quality } = picturePanel({ $, listen, focus, onSize: zoom.show, onQuality: draw });
  draw();
  fingers({ target, listen, zoom, readOnly });
  const resized = new ResizeObserver(() => zoom.refit());
  resized.observe($('stage'));
  signal.addEventListener('abort', () => resized.disconnect());
  if (readOnly) return;

  followFrame({ $, readOnly, listen, signal, socket, send });
  softKeyboard({ $, listen, focus });
  files = fileBox({ $, send, listen, signal, notice: ui.notice, focus, at });
  listen(target, 'mousedown', focus, { capture: true });
  listen(target, 'touchend', focus, { capture: true });

  // Runs before noVNC's own listeners, which take every key away from the text field.
  listen(field, 'keydown', before);
  listen(field, 'keyup', before);
  keyboard = new Keyboard(field);
  keyboard.onkeyevent = (keysym, code, down) => rfb.sendKey(keysym, code, down);
  keyboard.grab();

  function draw() {
    const level = quality() === 'auto' ? followed : quality();
    [rfb.qualityLevel, rfb.compressionLevel] = QUALITY[level];
  }

  /** noVNC scales the display to its container. */
  function grow(scale) {
    target.style.width = target.style.height = `${scale * 100}%`;
  }

  function actualScale() {
    const canvas = target.querySelector('canvas');
    const { clientWidth, clientHeight } = $('stage');
    return Math.max(1, canvas.width / clientWidth, canvas.height / clientHeight);
  }

  /** Where on the display an event happened. */
  function at({ clientX, clientY }) {
    const canvas = target.querySelector('canvas');
    const box = canvas.getBoundingClientRect();
    return {
      x: ((clientX - box.left) / box.width) * canvas.width,
      y: ((clientY - box.top) / box.height) * canvas.height,
    };
  }

  let controlHeld = false;

  function before(event) {
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
  function shortcut(letter) {
    if (isMac) rfb.sendKey(KeyTable.XK_Alt_L, 'MetaLeft', false);
    const held = controlHeld && !isMac;
    if (!held) rfb.sendKey(KeyTable.XK_Control_L, 'ControlLeft', true);
    rfb.sendKey(letter.charCodeAt(0), `Key${letter.toUpperCase()}`);
    if (!held) rfb.sendKey(KeyTable.XK_Control_L, 'ControlLeft', false);
  }

  function paste(text) {
    if (!text) return;
    rfb.clipboardPasteFrom(text);
    shortcut('v');
  }

  /** Sends text as keys if the display has a key for each character; otherwise as a paste. */
  function write(text) {
    const characters = [...text.replaceAll('\r\n', '\n')];
    if (!characters.every(hasKey)) return paste(text);
    for (const character of characters) {
      rfb.sendKey(character === '\n' ? KeyTable.XK_Return : keysymOf(character), null);
    }
  }

  const nothing = () => {}; // the display cannot show text that is still being composed
  const erase = () => rfb.sendKey(KeyTable.XK_BackSpace, 'Backspace');
  readText(field, { text: write, compose: nothing, paste, erase }, signal);
  ui.clipboard.onPaste = paste;
  focus();
}

/** Whether a key writes a letter that an American keyboard lacks. The session's own modifiers must not interfere with it. */
function isLetter(event) {
  const plain = event.getModifierState('AltGraph') || (!event.ctrlKey && !event.metaKey && (!event.altKey || isMac));
  return plain && [...event.key].length === 1 && event.key > '~';
}

/** The characters of src/chromium/display/keymap.ts. */
const KEYS =
  /^[\n -~\u00a1-\u00ac\u00ae-\u017f\u0218-\u021b\u0386-\u03ce\u0400-\u045f\u0490\u0491\u2013\u2014\u2018-\u201e\u2026\u20ac]$/;
const RARE = 'ĔĕĬĭŎŏĸĿŀŉŊŋŦŧſĲĳЀЍѐѝ\u038b\u038d\u03a2';

function hasKey(character) {
  return KEYS.test(character) && !RARE.includes(character);
}

function keysymOf(character) {
  const codePoint = character.codePointAt(0);
  return codePoint <= 0xff ? codePoint : codePoint + 0x1000000;
}

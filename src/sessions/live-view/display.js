/** The view of a headful session: its display, over VNC, with noVNC. */
import RFB from './novnc/core/rfb.js';
import Keyboard from './novnc/core/input/keyboard.js';
import KeyTable from './novnc/core/input/keysym.js';
import { belongsToText, isMac, isShortcut, readText } from './keyboard.js';

export function display(socket, ui, signal) {
  const { $, readOnly } = ui;
  const target = $('display');
  const field = $('keyboard');
  target.replaceChildren();
  target.hidden = false;

  const rfb = new RFB(target, socket, { shared: true });
  rfb.scaleViewport = true;
  rfb.viewOnly = readOnly;
  rfb.focusOnClick = false; // the text field receives the keys
  rfb.background = 'transparent';
  rfb.qualityLevel = 8;
  rfb.addEventListener('connect', () => ui.connected());
  rfb.addEventListener('clipboard', ({ detail }) => void ui.clipboard.receive(detail.text));
  signal.addEventListener('abort', () => keyboard?.ungrab());

  let keyboard;
  if (readOnly) return;

  const listen = (on, name, listener, options) => on.addEventListener(name, listener, { signal, ...options });
  const focus = () => field.focus({ preventScroll: true });
  listen(target, 'mousedown', focus, { capture: true });
  listen(target, 'touchend', focus, { capture: true });

  // Runs before noVNC's own listeners, which take every key away from the text field.
  listen(field, 'keydown', before);
  listen(field, 'keyup', before);
  keyboard = new Keyboard(field);
  keyboard.onkeyevent = (keysym, code, down) => rfb.sendKey(keysym, code, down);
  keyboard.grab();

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

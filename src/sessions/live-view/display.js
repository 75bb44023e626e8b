/** The view of a headful session: its display, over VNC, by noVNC. */
import RFB from './novnc/core/rfb.js';
import Keyboard from './novnc/core/input/keyboard.js';
import keysyms from './novnc/core/input/keysymdef.js';
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
  rfb.focusOnClick = false; // the keys come from the text field
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

  // Before noVNC's own listeners, which take every key away from the text field.
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
    if (!leave && !command) return;
    event.stopImmediatePropagation();
    if (!command) return;
    event.preventDefault();
    shortcut(event.key.toLowerCase());
  }

  /** Control and a letter. A Mac's Command went to the session as Alt, and comes up again before. */
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

  function write(text) {
    for (const character of text) {
      const keysym = character === '\n' ? KeyTable.XK_Return : keysyms.lookup(character.codePointAt(0));
      rfb.sendKey(keysym, null);
    }
  }

  const nothing = () => {}; // the display has no place for a text that is not done
  const erase = () => rfb.sendKey(KeyTable.XK_BackSpace, 'Backspace');
  readText(field, { text: write, compose: nothing, paste, erase }, signal);
  ui.clipboard.onPaste = paste;
  focus();
}

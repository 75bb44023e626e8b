/** The viewer's keys, and text that comes without keys. */
import { shortcutOf } from './shortcuts.js';
import { belongsToText, isMac, isShortcut, modifiersOf, readText } from './keyboard.js';

/** `flush` sends the movements that wait. Returns what pastes a text. */
export function keys({ $, act, listen, signal, flush, onShortcut }) {
  const field = $('keyboard');
  const held = new Map();

  listen(field, 'keydown', (event) => {
    if (belongsToText(event) || ['F11', 'F12'].includes(event.key)) return;
    if (isShortcut(event, 'v')) return; // the paste follows
    event.preventDefault();
    flush();
    const shortcut = shortcutOf(event);
    if (shortcut !== undefined) return onShortcut(shortcut);
    if (isShortcut(event, 'c', 'x')) return act({ type: 'copy', cut: event.key.toLowerCase() === 'x' });
    const key = keyOf(event);
    held.set(event.code, key);
    act({ ...key, event: 'down', text: textOf(event), repeat: event.repeat });
    // A Mac does not report keys that are released while Command is down.
    if (isMac && event.metaKey && event.key !== 'Meta') keyUp(event.code, key.modifiers);
  });
  listen(field, 'keyup', (event) => {
    if (!held.has(event.code)) return;
    event.preventDefault();
    keyUp(event.code, keyOf(event).modifiers);
  });
  listen(field, 'blur', () => {
    for (const code of held.keys()) keyUp(code, 0);
  });

  function keyUp(code, modifiers) {
    const key = held.get(code);
    if (!key) return;
    held.delete(code);
    act({ ...key, event: 'up', text: '', repeat: false, modifiers });
  }

  const press = (key, code, keyCode) => {
    const event = { type: 'key', key, code, keyCode, location: 0, modifiers: 0, text: '', repeat: false };
    act({ ...event, event: 'down' });
    act({ ...event, event: 'up' });
  };
  const paste = (text) => text && act({ type: 'paste', text });
  readText(
    field,
    {
      text: (text) => act({ type: 'text', text }),
      compose: (text) => act({ type: 'compose', text: text.slice(0, 1000) }),
      paste,
      erase: () => press('Backspace', 'Backspace', 8),
    },
    signal,
  );
  return paste;
}

function keyOf(event) {
  const isCommand = isMac && event.key === 'Meta';
  return {
    type: 'key',
    key: isCommand ? 'Control' : event.key,
    code: isCommand ? event.code.replace('Meta', 'Control') : event.code,
    keyCode: isCommand ? 17 : event.keyCode,
    location: event.location,
    modifiers: writes(event) ? modifiersOf(event) & 8 : modifiersOf(event),
  };
}

/** Whether the key writes something: by itself, with Shift, or with AltGr, which Windows reports as Control and Alt. */
function writes(event) {
  if ([...event.key].length !== 1) return false;
  if (event.getModifierState('AltGraph')) return true;
  return !event.ctrlKey && !event.metaKey && (!event.altKey || isMac);
}

function textOf(event) {
  if (event.key === 'Enter' && !event.ctrlKey && !event.metaKey && !event.altKey) return '\r';
  return writes(event) ? event.key : '';
}

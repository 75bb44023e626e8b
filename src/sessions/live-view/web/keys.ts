/** The viewer's keys, and text that comes without keys. */
import type { ViewerMessageOf } from '../../../chromium/pages/viewer-protocol.ts';
import { $ } from './elements.ts';
import { belongsToText, isMac, isShortcut, modifiersOf, readText } from './keyboard.ts';
import type { Parts, Send } from './parts.ts';
import { shortcutOf, type Shortcut } from './shortcuts.ts';

/** A key, without what becomes of it. */
type Key = Omit<ViewerMessageOf<'key'>, 'event' | 'text' | 'repeat'>;

/** `flush` sends the movements that wait. Returns what pastes a text. */
export function keys({
  act,
  listen,
  signal,
  flush,
  onShortcut,
}: Parts & { flush(): void; onShortcut(name: Shortcut): void }) {
  const field = $('keyboard');
  const held = new Map<string, Key>();

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

  function keyUp(code: string, modifiers: number): void {
    const key = held.get(code);
    if (!key) return;
    held.delete(code);
    act({ ...key, event: 'up', text: '', repeat: false, modifiers });
  }

  const paste = (text: string) => {
    if (text) act({ type: 'paste', text });
  };
  readText(
    field,
    {
      text: (text) => act({ type: 'text', text }),
      compose: (text) => act({ type: 'compose', text: text.slice(0, 1000) }),
      paste,
      erase: () => press(act, { key: 'Backspace', code: 'Backspace', keyCode: 8 }),
    },
    signal,
  );
  return paste;
}

/** Presses and releases a key, with the modifiers that CDP counts. */
export function press(act: Send, key: Pick<Key, 'key' | 'code' | 'keyCode'>, modifiers = 0): void {
  for (const event of ['down', 'up'] as const)
    act({ type: 'key', event, ...key, location: 0, modifiers, text: '', repeat: false });
}

function keyOf(event: KeyboardEvent): Key {
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
function writes(event: KeyboardEvent): boolean {
  if (Array.from(event.key).length !== 1) return false;
  if (event.getModifierState('AltGraph')) return true;
  return !event.ctrlKey && !event.metaKey && (!event.altKey || isMac);
}

function textOf(event: KeyboardEvent): string {
  if (event.key === 'Enter' && !event.ctrlKey && !event.metaKey && !event.altKey) return '\r';
  return writes(event) ? event.key : '';
}

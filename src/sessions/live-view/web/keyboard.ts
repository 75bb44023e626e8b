/**
 * Typing goes into an invisible text field, because only a text field gets dead keys, input methods, phone keyboards and paste. Keys are
 * intercepted before they write into it; what it does receive is text without a key.
 */
import { listenUntil } from './listen.ts';

export const isMac = /Mac|iPhone|iPad/.test(navigator.platform);

/** Whether the text field has to get this key, because it is part of a text being composed. */
export function belongsToText(event: KeyboardEvent): boolean {
  return event.isComposing || event.keyCode === 229 || ['Dead', 'Process', 'Unidentified'].includes(event.key);
}

/** Ctrl (Command on a Mac) and no other modifier. */
export function isShortcut(event: KeyboardEvent, ...keys: string[]): boolean {
  const held = isMac ? event.metaKey && !event.ctrlKey : event.ctrlKey && !event.metaKey;
  return held && !event.altKey && keys.includes(event.key.toLowerCase());
}

/** Modifiers as CDP counts them. The session runs on Linux, where Control takes the role of a Mac's Command. */
export function modifiersOf(event: KeyboardEvent | MouseEvent): number {
  const control = event.ctrlKey || (isMac && event.metaKey);
  const meta = event.metaKey && !isMac;
  return (event.altKey ? 1 : 0) | (control ? 2 : 0) | (meta ? 4 : 0) | (event.shiftKey ? 8 : 0);
}

/**
 * `text` gets text entered without keys, `compose` the unfinished text of an input method, `paste` pasted text; `erase` is a
 * phone's backspace.
 */
export function readText(
  field: HTMLTextAreaElement,
  {
    text,
    compose,
    paste,
    erase,
  }: { text(text: string): void; compose(text: string): void; paste(text: string): void; erase(): void },
  signal: AbortSignal,
): void {
  const listen = listenUntil(signal);

  listen(field, 'compositionupdate', ({ data }) => compose(data));
  listen(field, 'compositionend', ({ data }) => {
    field.value = '';
    if (data) text(data);
    else compose('');
  });
  listen(field, 'beforeinput', (event) => {
    if (event.inputType !== 'deleteContentBackward' || event.isComposing) return;
    event.preventDefault();
    erase();
  });
  listen(field, 'input', (event) => {
    if (event instanceof InputEvent && event.isComposing) return;
    const written = field.value;
    field.value = '';
    if (written) text(written);
  });
  listen(field, 'paste', (event) => {
    event.preventDefault();
    paste(event.clipboardData?.getData('text/plain') ?? '');
  });
}

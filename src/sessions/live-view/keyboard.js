/**
 * Typing goes into a text field that nobody sees, because only a text field gets dead keys, input methods, phone
 * keyboards and paste. Keys are taken out of it before they write; what it does write is text without a key.
 */

export const isMac = /Mac|iPhone|iPad/.test(navigator.platform);

/** Whether the text field has to see this key: it is part of a text to come. */
export function belongsToText(event) {
  return event.isComposing || event.keyCode === 229 || ['Dead', 'Process', 'Unidentified'].includes(event.key);
}

/** Ctrl, or Command where that is its name, and nothing else. */
export function isShortcut(event, ...keys) {
  const held = isMac ? event.metaKey && !event.ctrlKey : event.ctrlKey && !event.metaKey;
  return held && !event.altKey && keys.includes(event.key.toLowerCase());
}

/**
 * `text` gets what was written without keys, `compose` what an input method is still at, `paste` what was pasted, `erase` is
 * a phone's backspace.
 */
export function readText(field, { text, compose, paste, erase }, signal) {
  const listen = (name, listener) => field.addEventListener(name, listener, { signal });

  listen('compositionupdate', ({ data }) => compose(data));
  listen('compositionend', ({ data }) => {
    field.value = '';
    if (data) text(data);
    else compose('');
  });
  listen('beforeinput', (event) => {
    if (event.inputType !== 'deleteContentBackward' || event.isComposing) return;
    event.preventDefault();
    erase();
  });
  listen('input', (event) => {
    if (event.isComposing) return;
    const written = field.value;
    field.value = '';
    if (written) text(written);
  });
  listen('paste', (event) => {
    event.preventDefault();
    paste(event.clipboardData.getData('text/plain'));
  });
}

/** The dialogs of the page (alert, confirm, prompt, beforeunload), which wait for an answer. */
import type { ViewMessageOf } from '../../../chromium/pages/viewer-protocol.ts';
import { $ } from './elements.ts';
import type { Parts } from './parts.ts';

export function dialogBox({ act, listen, signal, focus }: Parts) {
  function open({ kind, message, defaultText }: ViewMessageOf<'dialog'>) {
    const leaving = kind === 'beforeunload';
    $('dialog-title').textContent = leaving ? 'Leave this page?' : 'The page says';
    $('dialog-message').textContent = leaving ? 'Your changes may not be saved.' : message;
    $('dialog-accept').textContent = leaving ? 'Leave' : 'OK';
    $('dialog-cancel').textContent = leaving ? 'Stay' : 'Cancel';
    $('dialog-cancel').hidden = kind === 'alert';
    $('dialog-text').hidden = kind !== 'prompt';
    $('dialog-text').value = defaultText;
    $('dialog').hidden = false;
    $(kind === 'prompt' ? 'dialog-text' : 'dialog-accept').focus();
    $('dialog-text').select();
  }

  function close() {
    if ($('dialog').hidden) return;
    $('dialog').hidden = true;
    focus();
  }

  function answer(accept: boolean) {
    act({ type: 'answer', accept, text: $('dialog-text').value });
    close();
  }

  listen($('dialog'), 'submit', (event) => {
    event.preventDefault();
    answer(true);
  });
  listen($('dialog-cancel'), 'click', () => answer(false));
  listen($('dialog'), 'keydown', (event) => event.key === 'Escape' && answer(false));
  signal.addEventListener('abort', close);

  return { open, close };
}

import type { LocalClient } from '../cdp/local-client.ts';
import { atFocus, evaluateAt, type LookedAt } from './frame-places.ts';

/**
 * The clipboard of a headless browser, from outside. CDP has no command for it, and `navigator.clipboard` needs permissions that the page
 * would see. So both directions use what a page's own Ctrl+C and Ctrl+V do, observed from an isolated world: the page's script cannot see
 * that world, nor change what it runs.
 *
 * Not available this way: text that a page writes itself with `navigator.clipboard.writeText` (a "Copy" button). It is in the browser's
 * clipboard, and Ctrl+V in the session pastes it, but it cannot be read from outside.
 */

const CONTROL = 2;

/** Copies or cuts the selection, in the page and for the caller: the text that a paste would give. */
export async function copyFrom(client: LocalClient, page: LookedAt, cut: boolean): Promise<string> {
  const copied = await atFocus(client, page, async (place) => {
    await evaluateAt(client, place, `(${watchCopy.toString()})()`);
    await press(client, page.sessionId, cut ? 'x' : 'c', cut ? 'cut' : 'copy');
    return evaluateAt(client, place, 'globalThis.corralCopied?.()');
  });
  return typeof copied === 'string' ? copied : '';
}

/** Puts the text into the browser's clipboard, then presses Ctrl+V: the page sees a paste like any other. */
export async function pasteInto(client: LocalClient, page: LookedAt, text: string): Promise<void> {
  const written = await atFocus(client, page, (place) =>
    evaluateAt(client, place, `(${writeClipboard.toString()})(${JSON.stringify(text)})`),
  );
  if (written === true) await press(client, page.sessionId, 'v', 'paste');
  else await client.send('Input.insertText', { text }, page.sessionId);
}

/** Presses a shortcut, with the editing command that a browser with a window would add to it. */
async function press(client: LocalClient, sessionId: string, key: string, command: string): Promise<void> {
  const code = `Key${key.toUpperCase()}`;
  const event = { key, code, windowsVirtualKeyCode: code.charCodeAt(3), modifiers: CONTROL };
  await client.send('Input.dispatchKeyEvent', { ...event, type: 'rawKeyDown', commands: [command] }, sessionId);
  await client.send('Input.dispatchKeyEvent', { ...event, type: 'keyUp' }, sessionId);
}

// The rest runs in the page, as text. `dom` exists for the compiler, which has no browser types here.

/* oxlint-disable typescript/no-explicit-any */

/** Defines a function that returns what was copied since: what the page put in, or else the selection. */
function watchCopy(): void {
  const dom: any = globalThis;
  const selected = (): string => {
    let element = dom.document.activeElement;
    while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
    if (/^(input|textarea)$/.test(element?.localName) && element.type !== 'password') {
      const { selectionStart: start, selectionEnd: end } = element; // null for inputs that have no text to select
      if (start !== null && start !== end) return element.value.slice(start, end);
    }
    return String(dom.getSelection() ?? '');
  };
  let text = selected();
  const listen = (event: any) => {
    if (event.defaultPrevented) text = event.clipboardData.getData('text/plain');
  };
  dom.addEventListener('copy', listen);
  dom.addEventListener('cut', listen);
  dom.corralCopied = () => {
    dom.removeEventListener('copy', listen);
    dom.removeEventListener('cut', listen);
    delete dom.corralCopied;
    return text;
  };
}

/** Copies a text that is not selected in the page. Needs no permission, and no https. */
function writeClipboard(text: string): boolean {
  const dom: any = globalThis;
  let done = false;
  const write = (event: any) => {
    event.clipboardData.setData('text/plain', text);
    event.preventDefault();
    event.stopImmediatePropagation();
    done = true;
  };
  dom.addEventListener('copy', write, { capture: true, once: true });
  dom.document.execCommand('copy');
  dom.removeEventListener('copy', write, { capture: true });
  return done;
}

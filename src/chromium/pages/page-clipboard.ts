import type { LocalClient } from '../cdp/local-client.ts';
import { atFocus, evaluateAt, type LookedAt } from './frame-places.ts';
import { pageCall } from './page-script.ts';

/**
 * The clipboard of a headless browser, from outside. CDP has no command for it, and `navigator.clipboard` needs permissions that the page
 * would see. So both directions use the effects of a page's own Ctrl+C and Ctrl+V, observed from an isolated world: the page's script can
 * neither see that world nor change its scripts.
 *
 * Not available this way: text that a page writes itself with `navigator.clipboard.writeText` (a "Copy" button). It is in the browser's
 * clipboard, and Ctrl+V in the session pastes it, but it cannot be read from outside.
 */

const CONTROL = 2;
/** In characters. The viewer may send as much the other way. */
const LONGEST_COPY = 1024 * 1024;

/** Copies or cuts the selection, in the page and for the caller: the text that a paste would give. */
export async function copyFrom(client: LocalClient, page: LookedAt, cut: boolean): Promise<string> {
  const copied = await atFocus(client, page, async (place) => {
    await evaluateAt(client, place, pageCall('watchCopy'));
    await press(client, page.sessionId, cut ? 'x' : 'c', cut ? 'cut' : 'copy');
    return evaluateAt(client, place, pageCall('takeCopy', LONGEST_COPY));
  });
  return typeof copied === 'string' ? copied : '';
}

/** Puts the text into the browser's clipboard, then presses Ctrl+V: the page sees a paste like any other. */
export async function pasteInto(client: LocalClient, page: LookedAt, text: string): Promise<void> {
  const written = await atFocus(client, page, (place) => evaluateAt(client, place, pageCall('writeClipboard', text)));
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

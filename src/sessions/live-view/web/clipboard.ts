/**
 * The clipboard between the session and its viewer. Where the viewer's browser allows it, text goes straight to and from the computer's
 * clipboard; where it does not (no https, an iframe without permission), there is the panel.
 */
import { $ } from './elements.ts';
import { listenUntil } from './listen.ts';
import { panel } from './panel.ts';

/** A page in the session may copy at any time. Only text copied soon after the viewer's own input reaches the viewer's computer. */
const OWN_DOING_MS = 5000;

export function clipboardPanel({ readOnly, notice }: { readOnly: boolean; notice(text: string): void }) {
  const text = $('clipboard-text');
  const focus = (yes: boolean) => (yes ? text : $('keyboard')).focus({ preventScroll: true });
  const box = panel({ name: 'clipboard', listen: listenUntil(), opened: focus });
  let paste: (text: string) => void = () => {};
  let lastDoing = -Infinity;

  box.button.hidden = readOnly;
  $('clipboard-copy').addEventListener('click', async () => {
    const done = await toComputer(text.value);
    notice(done ? 'Copied.' : 'This browser does not allow it: press Ctrl+C.');
    if (!done) text.select();
  });
  $('clipboard-paste').addEventListener('click', () => {
    paste(text.value);
    box.open(false);
  });
  for (const doing of ['keydown', 'pointerdown']) {
    addEventListener(doing, () => (lastDoing = performance.now()), { capture: true });
  }

  async function toComputer(value: string): Promise<boolean> {
    try {
      await navigator.clipboard.writeText(value);
      return true;
    } catch {
      return copyTheOldWay(value);
    }
  }

  function copyTheOldWay(value: string): boolean {
    const focused = document.activeElement;
    const scratch = document.createElement('textarea');
    scratch.value = value;
    document.body.append(scratch);
    scratch.select();
    const done = document.execCommand('copy');
    scratch.remove();
    if (focused instanceof HTMLElement) focused.focus({ preventScroll: true });
    return done;
  }

  return {
    /** The function that sends a text from the panel into the session. */
    set onPaste(how: (text: string) => void) {
      paste = how;
    },

    /** Called when the session copied something. */
    async receive(value: string): Promise<void> {
      if (readOnly || value === '') return;
      text.value = value;
      const own = document.hasFocus() && performance.now() - lastDoing < OWN_DOING_MS;
      if (own && (await toComputer(value))) return;
      if (!box.isOpen) box.button.classList.add('news');
      if (own) notice('The session copied something. It is in the clipboard above.');
    },
  };
}

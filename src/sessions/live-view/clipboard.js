/**
 * The clipboard between the session and its viewer. Where the viewer's browser allows it, text goes straight to and from the computer's
 * clipboard; where it does not (no https, an iframe without permission), there is the panel.
 */

/** A page in the session may copy at any time. Only text copied soon after the viewer's own input reaches the viewer's computer. */
const OWN_DOING_MS = 5000;

export function clipboardPanel({ $, readOnly, notice }) {
  const panel = $('clipboard');
  const button = $('clipboard-button');
  const text = $('clipboard-text');
  let paste = () => {};
  let lastDoing = -Infinity;

  button.hidden = readOnly;
  button.addEventListener('click', () => open(panel.hidden));
  $('clipboard-copy').addEventListener('click', async () => {
    const done = await toComputer(text.value);
    notice(done ? 'Copied.' : 'This browser does not allow it: press Ctrl+C.');
    if (!done) text.select();
  });
  $('clipboard-paste').addEventListener('click', () => {
    paste(text.value);
    open(false);
  });
  panel.addEventListener('keydown', (event) => event.key === 'Escape' && open(false));
  for (const doing of ['keydown', 'pointerdown']) {
    addEventListener(doing, () => (lastDoing = performance.now()), { capture: true });
  }

  function open(yes) {
    panel.hidden = !yes;
    button.setAttribute('aria-expanded', String(yes));
    button.classList.remove('news');
    (yes ? text : $('keyboard')).focus({ preventScroll: true });
  }

  async function toComputer(value) {
    try {
      await navigator.clipboard.writeText(value);
      return true;
    } catch {
      return copyTheOldWay(value);
    }
  }

  function copyTheOldWay(value) {
    const focused = document.activeElement;
    const scratch = document.createElement('textarea');
    scratch.value = value;
    document.body.append(scratch);
    scratch.select();
    const done = document.execCommand('copy');
    scratch.remove();
    focused?.focus({ preventScroll: true });
    return done;
  }

  return {
    /** The function that sends a text from the panel into the session. */
    set onPaste(how) {
      paste = how;
    },

    /** Called when the session copied something. */
    async receive(value) {
      if (readOnly || value === '') return;
      text.value = value;
      const own = document.hasFocus() && performance.now() - lastDoing < OWN_DOING_MS;
      if (own && (await toComputer(value))) return;
      if (panel.hidden) button.classList.add('news');
      if (own) notice('The session copied something. It is in the clipboard above.');
    },
  };
}

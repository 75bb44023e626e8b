/** A panel below the header, with its button. One at a time is open: they have the same place. */
import { $ } from './elements.ts';
import type { Listen } from './listen.ts';

/** `opened` is called when it opens or closes. */
export function panel({
  name,
  listen,
  opened,
}: {
  name: 'clipboard' | 'files' | 'picture';
  listen: Listen;
  opened(yes: boolean): void;
}) {
  const [box, button] = [$(name), $(`${name}-button`)];

  function open(yes: boolean): void {
    if (box.hidden !== yes) return;
    box.hidden = !yes;
    button.setAttribute('aria-expanded', String(yes));
    button.classList.remove('news');
    if (yes) box.dispatchEvent(new CustomEvent('panel', { bubbles: true }));
    opened(yes);
  }

  listen(button, 'click', () => open(Boolean(box.hidden)));
  listen(box, 'keydown', (event) => event.key === 'Escape' && open(false));
  listen(document, 'panel', ({ target }) => target !== box && open(false));
  return {
    button,
    open,
    get isOpen() {
      return !box.hidden;
    },
  };
}

/**
 * The keyboard on the screen of a phone. Every tap focuses the text field that takes the keys, and a phone would cover half of the page
 * with its keyboard each time. So it comes with a button only.
 */
import { $ } from './elements.ts';
import type { Parts } from './parts.ts';

export function softKeyboard({ listen, focus }: Parts): void {
  if (!matchMedia('(any-pointer: coarse)').matches) return;
  const [button, field] = [$('keyboard-button'), $('keyboard')];
  const show = (yes: boolean) => {
    field.inputMode = yes ? 'text' : 'none';
    button.setAttribute('aria-pressed', String(yes));
  };
  show(false);
  button.hidden = false;
  listen(button, 'click', () => {
    show(field.inputMode === 'none');
    field.blur(); // a phone looks at the mode when a field gets the focus
    focus();
  });
}

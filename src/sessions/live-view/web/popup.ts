/**
 * The popups that a headless browser does not paint: lists of options, pickers of dates and colours, and the menu of the right button. What
 * is in them is text of the page.
 */
import type {
  Box,
  Popup,
  PopupOption,
  ViewerMessageOf,
  ViewMessageOf,
} from '../../../chromium/pages/viewer-protocol.ts';
import { $ } from './elements.ts';
import { press } from './keys.ts';
import type { Parts } from './parts.ts';
import type { Screen } from './picture.ts';

const MOST_ROWS = 12;

/** The viewer's answer to a popup, without the popup's number. */
type Answer = WithoutId<ViewerMessageOf<'choose' | 'setValue' | 'dismiss'>>;
type WithoutId<M> = M extends unknown ? Omit<M, 'id'> : never;
type ValuePopup = Extract<Popup, { kind: 'value' }>;

export function popups({
  act,
  listen,
  signal,
  focus,
  screen,
  onCopied,
  onPaste,
  notice,
}: Parts & { screen: Screen; onCopied(text: string): void; onPaste(text: string): void }) {
  const box = $('popup');
  let id: number | undefined; // of the page's popup; undefined for a menu, and without a popup

  function open(place: Box, ...content: HTMLElement[]): void {
    box.replaceChildren(...content);
    box.hidden = false;
    const { left, top, width, height } = screen.place(place);
    const { clientWidth, clientHeight } = $('stage');
    box.style.minWidth = `${Math.round(Math.min(width, clientWidth))}px`;
    const { offsetWidth, offsetHeight } = box;
    const below = top + height;
    const y = below + offsetHeight <= clientHeight ? below : top - offsetHeight;
    box.style.left = `${Math.round(Math.max(0, Math.min(left, clientWidth - offsetWidth)))}px`;
    box.style.top = `${Math.round(Math.max(0, Math.min(y, clientHeight - offsetHeight)))}px`;
  }

  function close(): void {
    if (box.hidden) return;
    const focused = box.contains(document.activeElement);
    box.hidden = true;
    box.replaceChildren();
    id = undefined;
    if (focused) focus();
  }

  /** Sends the choice. The service does not confirm it: the page's next picture does. */
  function answer(message: Answer): void {
    if (id !== undefined) act({ ...message, id });
    close();
    focus();
  }
  const dismiss = () => answer({ type: 'dismiss' });

  /** Control and A, as the keyboard would send it. */
  const selectAll = () => press(act, { key: 'a', code: 'KeyA', keyCode: 65 }, 2);

  async function paste(): Promise<void> {
    try {
      onPaste(await navigator.clipboard.readText());
    } catch {
      notice('This browser does not allow it: press Ctrl+V.');
    }
  }

  function menu({ x, y, link, selected, editable }: ViewMessageOf<'menu'>): void {
    const nothing = !link && !editable && !selected;
    const items: [offered: boolean, text: string, run: () => void][] = [
      [link !== '', 'Open link in new tab', () => act({ type: 'openTab', address: link })],
      [link !== '', 'Copy link address', () => onCopied(link)],
      [editable && selected, 'Cut', () => act({ type: 'copy', cut: true })],
      [selected, 'Copy', () => act({ type: 'copy', cut: false })],
      [editable, 'Paste', () => void paste()],
      [true, 'Select all', selectAll],
      [nothing, 'Back', () => act({ type: 'history', to: 'back' })],
      [nothing, 'Forward', () => act({ type: 'history', to: 'forward' })],
      [nothing, 'Reload', () => act({ type: 'history', to: 'reload' })],
    ];
    const offered = items.filter(([offered]) => offered);
    const elements = offered.map(([, text, run]) => {
      const item = button(text, () => {
        close();
        focus();
        run();
      });
      item.setAttribute('role', 'menuitem');
      return item;
    });
    close();
    open({ x, y, width: 0, height: 0 }, ...elements);
    box.setAttribute('role', 'menu');
    elements[0]?.focus();
  }

  listen(box, 'keydown', (event) => {
    if (box.getAttribute('role') !== 'menu' || box.hidden) return;
    const items = [...box.querySelectorAll('button')];
    const at = items.findIndex((item) => item === document.activeElement);
    if (event.key === 'ArrowDown') items[(at + 1) % items.length]?.focus();
    else if (event.key === 'ArrowUp') items.at(at - 1)?.focus();
    else if (event.key === 'Escape' || event.key === 'Tab') {
      close();
      focus();
    } else return;
    event.preventDefault();
  });
  // Down goes from a field to its suggestions, as in a window. Before the listener that sends keys to the page.
  listen(
    $('keyboard'),
    'keydown',
    (event) => {
      const suggestions = id !== undefined && !box.hidden && box.querySelector('select');
      if (event.key !== 'ArrowDown' || !suggestions) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      if (suggestions.selectedIndex === -1) suggestions.selectedIndex = 0;
      suggestions.focus();
    },
    { capture: true },
  );
  listen(screen.canvas, 'pointerdown', () => box.getAttribute('role') === 'menu' && close());
  signal.addEventListener('abort', close);

  return {
    menu,
    close,

    open({ id: number, popup }: ViewMessageOf<'popup'>): void {
      close();
      box.setAttribute('role', 'group');
      id = number;
      if (popup.kind === 'value') {
        const { form, field } = picker(popup, { dismiss, choose: (value) => answer({ type: 'setValue', value }) });
        open(popup, form);
        field.focus();
        try {
          field.showPicker();
        } catch {
          // This browser wants another click for it.
        }
        return;
      }
      const selected = popup.kind === 'select' ? popup.selected : -1;
      const choose = (index: number) => answer({ type: 'choose', index });
      const element = list(popup.options, selected, { choose, dismiss });
      open(popup, element);
      if (popup.kind === 'select') element.focus();
    },
  };
}

/** A list box with the options, of which `selected` may be none. */
function list(
  options: readonly PopupOption[],
  selected: number,
  { choose, dismiss }: { choose(index: number): void; dismiss(): void },
): HTMLSelectElement {
  const coarse = matchMedia('(pointer: coarse)').matches;
  const element = document.createElement('select');
  element.setAttribute('aria-label', 'Options');
  let group: HTMLOptGroupElement | undefined;
  options.forEach(({ label, group: name, disabled, hidden }, index) => {
    if (hidden) return;
    if (name !== (group?.label ?? '')) {
      group = name === '' ? undefined : document.createElement('optgroup');
      if (group) {
        group.label = name;
        element.append(group);
      }
    }
    const option = new Option(label, String(index), false, index === selected);
    option.disabled = disabled;
    (group ?? element).append(option);
  });
  element.size = Math.max(2, Math.min(MOST_ROWS, element.querySelectorAll('option, optgroup').length));
  if (selected === -1) element.selectedIndex = -1; // before it had a size, it took its first option
  const take = (value: string) => value !== '' && choose(Number(value));
  element.addEventListener('click', ({ target }) => {
    if (!coarse && target instanceof HTMLOptionElement && !target.disabled) take(target.value);
  });
  if (coarse) element.addEventListener('change', () => take(element.value)); // a phone shows a list of its own
  element.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' || event.key === ' ') take(element.value);
    else if (event.key === 'Escape' || event.key === 'Tab') dismiss();
    else return;
    event.preventDefault();
  });
  return element;
}

function picker(
  { input, value, min, max, step }: ValuePopup,
  { choose, dismiss }: { choose(value: string): void; dismiss(): void },
) {
  const form = document.createElement('form');
  const field = document.createElement('input');
  field.type = input;
  field.setAttribute('aria-label', 'Value');
  Object.assign(field, { min, max, step, value });
  const cancel = button('Cancel', dismiss);
  const set = button('Set');
  set.type = 'submit';
  set.className = 'primary';
  form.append(field, cancel, set);
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    choose(field.value);
  });
  form.addEventListener('keydown', (event) => event.key === 'Escape' && dismiss());
  return { form, field };
}

function button(text: string, onClick?: () => void): HTMLButtonElement {
  const element = document.createElement('button');
  element.type = 'button';
  element.textContent = text;
  if (onClick) element.addEventListener('click', onClick);
  return element;
}

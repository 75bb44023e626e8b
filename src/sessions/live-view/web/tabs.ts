/** The list of tabs, and the address of the shown tab. */
import type { TabInfo, ViewMessageOf } from '../../../chromium/pages/viewer-protocol.ts';
import { $ } from './elements.ts';
import type { Parts, Ui } from './parts.ts';
import type { Shortcut } from './shortcuts.ts';

export function tabBar({
  readOnly,
  send,
  act,
  listen,
  focus,
  onSelect,
  pageTitle,
}: Parts & { onSelect(): void; pageTitle: Ui['pageTitle'] }) {
  let rendered = '';

  $('tabs').hidden = false;
  $('new-tab').hidden = readOnly;
  $('navigation').hidden = false;
  $('address').readOnly = readOnly;
  for (const id of ['back', 'forward', 'reload'] as const) $(id).hidden = readOnly;
  $('follow').hidden = false;
  const follows = () => $('follow').getAttribute('aria-pressed') === 'true';
  listen($('follow'), 'click', () => {
    $('follow').setAttribute('aria-pressed', String(!follows()));
    send({ type: 'follow', on: follows() });
    focus();
  });

  function tabElement({ id, title, url }: TabInfo, shown: string | null): HTMLElement {
    const name = document.createElement('button');
    name.className = 'name';
    name.type = 'button';
    name.setAttribute('role', 'tab');
    name.setAttribute('aria-selected', String(id === shown));
    name.textContent = url === 'about:blank' && ['', url].includes(title) ? 'New tab' : title || url;
    name.title = `${name.textContent}\n${url}`;
    name.addEventListener('click', () => {
      onSelect();
      send({ type: 'selectTab', id });
      focus();
    });
    const element = document.createElement('div');
    element.className = 'tab';
    element.dataset.id = id;
    if (id === shown) element.dataset.shown = '';
    element.append(name);
    if (readOnly) return element;
    const close = document.createElement('button');
    close.className = 'close';
    close.type = 'button';
    close.textContent = '×';
    close.setAttribute('aria-label', `Close ${name.textContent}`);
    close.addEventListener('click', () => act({ type: 'closeTab', id }));
    element.append(close);
    return element;
  }

  function showAddress(): void {
    const { url = '' } = $('address').dataset;
    $('address').value = url === 'about:blank' ? '' : url;
  }

  listen($('new-tab'), 'click', () => {
    act({ type: 'newTab' });
    $('address').focus();
  });
  listen($('navigation'), 'submit', (event) => {
    event.preventDefault();
    if (readOnly) return;
    act({ type: 'navigate', address: $('address').value });
    focus();
  });
  listen($('address'), 'focus', () => $('address').select());
  listen($('address'), 'blur', showAddress);
  listen($('address'), 'keydown', (event) => {
    if (event.key !== 'Escape') return;
    showAddress();
    focus();
  });
  for (const to of ['back', 'forward', 'reload'] as const) listen($(to), 'click', () => act({ type: 'history', to }));

  return {
    render(tabs: readonly TabInfo[], shown: string | null): void {
      const now = JSON.stringify([tabs, shown]);
      if (now === rendered) return;
      rendered = now;
      $('tabs').replaceChildren(...tabs.map((tab) => tabElement(tab, shown)));
      const tab = tabs.find(({ id }) => id === shown);
      $('address').dataset.url = tab?.url ?? '';
      if (document.activeElement !== $('address')) showAddress();
      pageTitle(tab && (tab.title || tab.url));
    },

    /** A shortcut of the keyboard. */
    shortcut(name: Shortcut): void {
      if (name === 'address') $('address').focus();
      else if (name === 'newTab') $('new-tab').click();
      else if (name === 'closeTab')
        act({ type: 'closeTab', id: $('tabs').querySelector<HTMLElement>('[data-shown]')?.dataset.id ?? '' });
      else act({ type: 'history', to: name });
    },

    /** A new connection follows, until it gets another command. */
    tellFollowing(): void {
      if (!follows()) send({ type: 'follow', on: false });
    },

    page({ loading, canGoBack, canGoForward }: ViewMessageOf<'page'>): void {
      document.documentElement.classList.toggle('loading', loading);
      $('back').disabled = !canGoBack;
      $('forward').disabled = !canGoForward;
    },
  };
}

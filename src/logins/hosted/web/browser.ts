/** The flow's own browser, for what only a person can do there. It is loaded when it is asked for. */
import { $, make } from './elements.ts';

export function browserPanel() {
  let address = '';
  let frame: HTMLIFrameElement | undefined;

  function close(): void {
    frame?.remove();
    frame = undefined;
    $('browser-frame').hidden = true;
    $('browser-toggle').setAttribute('aria-expanded', 'false');
    $('browser-toggle').textContent = 'Show the browser';
    document.documentElement.removeAttribute('data-browser');
  }

  function open(): void {
    frame = make('iframe', {
      title: 'The browser that signs in',
      src: address,
      allow: 'clipboard-read; clipboard-write; fullscreen',
      referrerPolicy: 'no-referrer',
    });
    frame.setAttribute('aria-describedby', 'browser-leave');
    frame.addEventListener('load', () => frame?.contentWindow?.addEventListener('keydown', leave, { capture: true }));
    $('browser-leave').before(frame);
    $('browser-frame').hidden = false;
    $('browser-toggle').setAttribute('aria-expanded', 'true');
    $('browser-toggle').textContent = 'Hide the browser';
    document.documentElement.toggleAttribute('data-browser', true);
    $('browser').scrollIntoView({ block: 'nearest' });
  }

  /** Every other key goes to the session, Tab too, so that the keyboard needs a way out. */
  function leave(event: KeyboardEvent): void {
    if (event.key !== 'F6') return;
    event.preventDefault();
    event.stopImmediatePropagation();
    $('browser-toggle').focus();
  }

  $('browser-toggle').addEventListener('click', () => (frame ? close() : open()));

  return {
    /**
     * Every node serves the view of every session, so it is taken from the node that serves this page: it works wherever
     * this page does, and this page may frame nothing else.
     */
    offer(liveViewUrl: string | null | undefined): void {
      const search = liveViewUrl && URL.canParse(liveViewUrl) ? new URL(liveViewUrl).search : '';
      const offered = search ? new URL(`../../browser/live${search}`, location.href).href : undefined;
      $('browser').hidden = !offered;
      if (!offered) return close();
      // An event may bring a fresh token for the same view: an open one is left alone.
      address = offered;
      $('browser-link').href = offered;
    },
    close(): void {
      close();
      $('browser').hidden = true;
    },
    hasFocus: () => frame !== undefined && document.activeElement === frame,
  };
}

/** With `&resize=true` in the link, the viewport of the session follows this window, for a view that is part of another page. */
import { $ } from './elements.ts';
import type { Parts } from './parts.ts';

/** How long the window keeps its size before the session gets it. */
const RESIZED_MS = 300;
/** The window of a headful browser is never smaller. */
const LEAST = { width: 500, height: 400 };
const MOST = 4096;

export function followFrame({ readOnly, listen, signal, send }: Parts, socket: WebSocket): void {
  if (readOnly || new URLSearchParams(location.search).get('resize') !== 'true') return;
  let timer: number | undefined;
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(sendSize, RESIZED_MS);
  };
  function sendSize() {
    const { clientWidth, clientHeight } = $('stage');
    const within = (length: number, least: number) => Math.max(least, Math.min(MOST, length));
    send({ type: 'fit', width: within(clientWidth, LEAST.width), height: within(clientHeight, LEAST.height) });
  }
  const observer = new ResizeObserver(soon);
  observer.observe($('stage'));
  listen(socket, 'open', soon);
  signal.addEventListener('abort', () => {
    clearTimeout(timer);
    observer.disconnect();
  });
}

/**
 * The live view's page: one connection at a time, and the messages shown without one. The content is drawn by screencast.ts (headless) or
 * display.ts (headful).
 */
import { clipboardPanel } from './clipboard.ts';
import { $ } from './elements.ts';
import { watchHeartbeat } from './heartbeat.ts';
import type { MakeView, Ui } from './parts.ts';

const root = document.documentElement;
const { socket: socketPath = '' } = root.dataset;
const readOnly = root.dataset.readOnly === 'true';

/** Close codes after which reconnecting may succeed: the service restarts or was busy, or the network dropped the connection. */
const MAY_COME_BACK = new Set([1006, 1012, 1013]);
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10_000;

const ui: Ui = {
  readOnly,
  clipboard: clipboardPanel({ readOnly, notice }),
  connected: () => state('connected', ''),
  state,
  notice,
  pageTitle,
};

const session = $('title').textContent;

/** What the window is called, in the header and in the list of windows. A title is the page's own text. */
function pageTitle(title = ''): void {
  document.title = title ? `${title} – ${session}` : session;
  $('page-title').textContent = title;
  $('page-title').hidden = title === '';
}

let attempts = 0;

function state(name: string, text: string, detail = ''): void {
  root.dataset.state = name;
  $('state-text').textContent = text;
  $('state-detail').textContent = detail;
}

let noticeTimer: number | undefined;
function notice(text: string): void {
  $('notice').textContent = text;
  $('notice').hidden = false;
  clearTimeout(noticeTimer);
  noticeTimer = setTimeout(() => ($('notice').hidden = true), 5000);
}

/** Relative to this page, to work behind any proxy path, and with the same token. */
function socketUrl(): URL {
  const url = new URL(socketPath, location.href);
  url.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
  url.search = location.search;
  if (readOnly) url.searchParams.set('readOnly', 'true');
  return url;
}

function connect(makeView: MakeView): void {
  const socket = new WebSocket(socketUrl());
  socket.binaryType = 'arraybuffer';
  const leave = new AbortController();
  socket.addEventListener('open', () => (attempts = 0));
  const over = (code: number, reason: string) => {
    if (leave.signal.aborted) return; // given up before it was closed
    leave.abort();
    root.classList.remove('loading');
    void closed(code, reason, makeView);
  };
  let before: Parameters<Ui['state']> = ['connecting', ''];
  watchHeartbeat(socket, leave.signal, {
    stalled() {
      before = [root.dataset.state ?? '', $('state-text').textContent, $('state-detail').textContent];
      state('reconnecting', 'The connection is lost.', 'The session sends no data.');
    },
    resumed: () => state(...before),
    dead() {
      socket.close(); // which a dead network delays
      over(1006, '');
    },
  });
  socket.addEventListener('close', ({ code, reason }) => over(code, reason));
  makeView(socket, ui, leave.signal);
}

async function closed(code: number, reason: string, makeView: MakeView): Promise<void> {
  if (!MAY_COME_BACK.has(code)) return state('ended', 'The session has ended.', reason);
  if (code === 1012) state('restarting', 'The browser restarts…', reason);
  else state('reconnecting', attempts === 0 ? 'The connection was lost. Trying again…' : 'Trying again…');
  // A refused handshake carries no reason. A request to the page's own address returns it.
  if (code === 1006) {
    const status = await ownStatus();
    if (status === 401 || status === 403) {
      return state('expired', 'This link has expired.', 'Ask for a new one where you got it.');
    }
    if (status === 404 || status === 410) return state('ended', 'The session has ended.');
  }
  const wait = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** attempts) * (0.75 + Math.random() / 2);
  attempts += 1;
  setTimeout(() => connect(makeView), wait);
}

async function ownStatus(): Promise<number | undefined> {
  try {
    const signal = AbortSignal.timeout(5000);
    const { status } = await fetch(location.href, { cache: 'no-store', headers: { accept: 'text/html' }, signal });
    return status;
  } catch {
    return undefined; // no network: it may return
  }
}

const fullscreen = $('fullscreen-button');
fullscreen.hidden = !document.fullscreenEnabled;
fullscreen.addEventListener('click', async () => {
  if (document.fullscreenElement) return document.exitFullscreen();
  await root.requestFullscreen();
  await navigator.keyboard?.lock().catch(() => {}); // so that Ctrl+W and similar shortcuts reach the session
  $('keyboard').focus({ preventScroll: true });
});

/** Starts the page with the view of the session's engine. */
export function view(makeView: MakeView): void {
  if (new URLSearchParams(location.search).get('header') === 'false') root.dataset.header = 'false';
  $('badge').hidden = !readOnly;
  connect(makeView);
}

/** The view of a headless session: pictures of one tab, the list of tabs, and the viewer's input. */
import { dialogBox } from './dialog.js';
import { fileBox } from './files.js';
import { followFrame } from './frame.js';
import { keys } from './keys.js';
import { picture } from './picture.js';
import { picturePanel } from './picture-panel.js';
import { pointer } from './pointer.js';
import { popups } from './popup.js';
import { softKeyboard } from './soft-keyboard.js';
import { tabBar } from './tabs.js';

export function screencast(socket, ui, signal) {
  const { $, readOnly } = ui;
  const send = (message) => socket.readyState === WebSocket.OPEN && socket.send(JSON.stringify(message));
  const parts = {
    $,
    readOnly,
    signal,
    send,
    act: readOnly ? () => {} : send,
    listen: (target, name, listener, options) => target.addEventListener(name, listener, { signal, ...options }),
    focus: () => $('keyboard').focus({ preventScroll: true }),
  };

  let empty = false;
  const screen = picture({ ...parts, onDrawn: () => !signal.aborted && !empty && ui.connected() });
  const dialog = dialogBox(parts);
  const tabs = tabBar({ ...parts, onSelect: dialog.close, pageTitle: ui.pageTitle });

  let popup;
  let files;
  const hearers = {
    hello() {},
    tabs(message) {
      tabs.render(message.tabs, message.shown);
      empty = message.shown === null;
      if (empty) ui.state('empty', 'No tab is open.', readOnly ? '' : 'Open one with + above.');
    },
    viewport: ({ width, height }) => screen.resize({ width, height }),
    page: tabs.page,
    dialog: dialog.open,
    dialogClosed: dialog.close,
    crashed: () => ui.notice('This tab has crashed. Reload it to go on.'),
    popup: (message) => popup?.open(message),
    popupClosed: () => popup?.close(),
    menu: (message) => popup?.menu(message),
    clipboard: ({ text }) => void ui.clipboard.receive(text),
    notice: ({ text }) => ui.notice(text),
  };

  function hear(message) {
    if (files && Object.hasOwn(files, message.type)) return files[message.type](message);
    if (Object.hasOwn(hearers, message.type)) hearers[message.type](message);
  }

  const tellQuality = (level) => send({ type: 'quality', level });
  const chosen = picturePanel({ ...parts, onSize: screen.zoom.show, onQuality: tellQuality });
  parts.listen(socket, 'open', () => chosen.quality() !== 'auto' && tellQuality(chosen.quality()));
  parts.listen(socket, 'open', screen.tellSize);
  parts.listen(socket, 'open', tabs.tellFollowing);
  followFrame({ ...parts, socket });
  parts.listen(socket, 'message', ({ data }) => {
    if (typeof data === 'string') hear(JSON.parse(data));
    else screen.show(data);
  });

  if (readOnly) return;
  const { flush } = pointer({ ...parts, screen });
  const { clipboard, notice } = ui;
  softKeyboard(parts);
  files = fileBox({ ...parts, notice, at: screen.at });
  const onPaste = (text) => paste(text);
  popup = popups({ ...parts, screen, notice, onPaste, onCopied: (text) => void clipboard.receive(text) });
  const paste = keys({ ...parts, flush, onShortcut: tabs.shortcut });
  clipboard.onPaste = paste;
  parts.focus();
}

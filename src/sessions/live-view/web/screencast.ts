/** The view of a headless session: pictures of one tab, the list of tabs, and the viewer's input. */
import type { ViewMessage } from '../../../chromium/pages/viewer-protocol.ts';
import { dialogBox } from './dialog.ts';
import { fileBox } from './files.ts';
import { followFrame } from './frame.ts';
import { keys } from './keys.ts';
import { partsOf, type MakeView } from './parts.ts';
import { picturePanel, type Quality } from './picture-panel.ts';
import { picture } from './picture.ts';
import { pointer } from './pointer.ts';
import { popups } from './popup.ts';
import { softKeyboard } from './soft-keyboard.ts';
import { tabBar } from './tabs.ts';
import { view } from './view.ts';

const screencast: MakeView = (socket, ui, signal) => {
  const { readOnly } = ui;
  const parts = partsOf(socket, ui, signal);
  const { send, listen } = parts;

  let empty = false;
  const screen = picture({ ...parts, onDrawn: () => !signal.aborted && !empty && ui.connected() });
  const dialog = dialogBox(parts);
  const tabs = tabBar({ ...parts, onSelect: dialog.close, pageTitle: ui.pageTitle });

  let popup: ReturnType<typeof popups> | undefined;
  let files: ReturnType<typeof fileBox> | undefined;

  function hear(message: ViewMessage): void {
    switch (message.type) {
      case 'hello':
        return;
      case 'tabs':
        tabs.render(message.tabs, message.shown);
        empty = message.shown === null;
        if (empty) ui.state('empty', 'No tab is open.', readOnly ? '' : 'Open one with + above.');
        return;
      case 'viewport':
        return screen.resize({ width: message.width, height: message.height });
      case 'page':
        return tabs.page(message);
      case 'dialog':
        return dialog.open(message);
      case 'dialogClosed':
        return dialog.close();
      case 'crashed':
        return ui.notice('This tab has crashed. Reload it to continue.');
      case 'popup':
        return popup?.open(message);
      case 'popupClosed':
        return popup?.close();
      case 'menu':
        return popup?.menu(message);
      case 'clipboard':
        return void ui.clipboard.receive(message.text);
      case 'notice':
        return ui.notice(message.text);
      case 'chooser':
      case 'more':
      case 'filesDone':
      case 'downloads':
      case 'saving':
      case 'saveBytes':
      case 'saved':
        return files?.hear(message);
      default:
        message satisfies never; // a node of another version may send more
    }
  }

  const tellQuality = (level: Quality) => send({ type: 'quality', level });
  const chosen = picturePanel({ ...parts, onSize: screen.zoom.show, onQuality: tellQuality });
  listen(socket, 'open', () => chosen.quality() !== 'auto' && tellQuality(chosen.quality()));
  listen(socket, 'open', screen.tellSize);
  listen(socket, 'open', tabs.tellFollowing);
  followFrame(parts, socket);
  listen(socket, 'message', ({ data }: MessageEvent<string | ArrayBuffer>) => {
    if (typeof data === 'string') hear(JSON.parse(data) as ViewMessage);
    else screen.show(data);
  });

  if (readOnly) return;
  const { flush } = pointer({ ...parts, screen });
  const { clipboard } = ui;
  softKeyboard(parts);
  files = fileBox({ ...parts, at: screen.at });
  const onPaste = (text: string) => paste(text);
  popup = popups({ ...parts, screen, onPaste, onCopied: (text) => void clipboard.receive(text) });
  const paste = keys({ ...parts, flush, onShortcut: tabs.shortcut });
  clipboard.onPaste = paste;
  parts.focus();
};

view(screencast);

import { isDeepStrictEqual } from 'node:util';
import type { LookedAt } from './frame-places.ts';
import { chooseOption, closePopup, readPopup, setValue } from './page-popups.ts';
import { MAX_MESSAGE } from './viewer-messages.ts';
import type { Popup, ViewerMessageOf } from './viewer-protocol.ts';
import type { Shown, Viewer } from './viewer.ts';

/** The deadline for the page's answer about its popup. */
const ANSWER_MS = 3000;

type PopupMessage = ViewerMessageOf<'choose' | 'setValue' | 'dismiss'>;

/**
 * The popup that the shown tab has open, for the viewer to draw. It is looked for after each click and key of the viewer: Chromium does not
 * report it. `exclusive` holds back the viewer's input during work on the page.
 */
export function viewerPopups(
  viewer: Viewer,
  world: string,
  exclusive: (tab: Shown, work: (page: LookedAt) => Promise<unknown>) => Promise<void>,
) {
  let shown: { id: number; tab: Shown; popup: Popup } | undefined;
  let lastId = 0;
  let looking = false;
  let lookAgain = false;
  /** The viewer's choices: their number, and the number that is still being sent to the page. */
  let choices = 0;
  let choosing = 0;

  async function look(tab: Shown): Promise<void> {
    if (tab.sessionId === undefined || viewer.over || viewer.shown !== tab || choosing > 0) return;
    const before = choices;
    const page = { sessionId: tab.sessionId, frameId: tab.id, world };
    lookAgain = looking;
    if (looking) return;
    looking = true;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<undefined>((resolve) => (timer = viewer.later(ANSWER_MS, () => resolve(undefined))));
    const popup = await Promise.race([readPopup(viewer.client, page).catch(() => undefined), late]);
    if (timer) viewer.forget(timer);
    looking = false;
    if (viewer.over || viewer.shown !== tab) return close();
    // A choice closes the popup. A read at that time may still return the closed popup.
    if (before === choices) {
      if (popup) open(tab, popup);
      else close();
    }
    if (lookAgain) await look(tab);
  }

  function open(tab: Shown, popup: Popup): void {
    if (shown?.tab === tab && isDeepStrictEqual(shown.popup, popup)) return;
    if (viewer.sink.bufferedAmount > MAX_MESSAGE) return; // the viewer is behind; it sees the popup after its next click
    lastId += 1;
    shown = { id: lastId, tab, popup };
    viewer.tell({ type: 'popup', id: lastId, popup });
  }

  function close(): void {
    if (!shown) return;
    shown = undefined;
    viewer.tell({ type: 'popupClosed' });
  }

  return {
    look: (tab: Shown) => void look(tab),
    close,

    /** The viewer's choice. A choice for a closed popup is ignored. */
    take(tab: Shown, message: PopupMessage): void {
      if (shown?.id !== message.id || shown.tab !== tab) return;
      const { popup } = shown;
      shown = undefined;
      const { client } = viewer;
      choices += 1;
      choosing += 1;
      void exclusive(tab, async (page) => {
        if (message.type === 'choose' && popup.kind === 'select') await chooseOption(client, page, message.index);
        else if (message.type === 'choose' && popup.kind === 'suggest') {
          const option = popup.options[message.index];
          if (option) await setValue(client, page, option.value);
        } else if (message.type === 'setValue' && popup.kind === 'value') await setValue(client, page, message.value);
        else if (popup.kind !== 'suggest') await closePopup(client, page);
      }).finally(() => (choosing -= 1));
    },
  };
}

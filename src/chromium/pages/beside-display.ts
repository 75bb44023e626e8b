import type { Log } from '../../lib/log.ts';
import { list, number } from '../../lib/shape.ts';
import type { WebSocketReceiver, WebSocketSink } from '../../lib/ws-sink.ts';
import type { Mux } from '../cdp/mux.ts';
import { isEvaluated, isTargetList } from '../cdp/shapes.ts';
import { activePage } from './active-page.ts';
import { displayLevel } from './display-level.ts';
import { fileChoosers } from './file-choosers.ts';
import { viewerFiles, type SessionFiles } from './viewer-files.ts';
import { isAboutFiles, readViewerMessage, viewerBounds } from './viewer-messages.ts';
import type { DisplayMessage } from './viewer-protocol.ts';
import { drop } from './viewer-uploads.ts';

/** Chromium does not report changed titles, and a display does not say which tab is in front. */
const EVERY_MS = 1000;
const LONGEST_TITLE = 200;
/** A viewer that is this far behind gets the message later. */
const MAX_UNREAD = 1024 * 1024;
const BRACE = 0x7b;
const isOrigin = list(number(-1e6, 1e6));

/**
 * The messages to a viewer of a display besides the picture, and its files. The display's own messages are passed on. Without
 * `files`, for a viewer that only watches, there are only the title and the quality.
 */
export function besideDisplay(
  mux: Mux,
  sink: WebSocketSink,
  display: WebSocketReceiver,
  {
    files,
    fit,
    log,
  }: {
    files?: SessionFiles | undefined;
    /** Gives the session's viewport another size. Not for a viewer that only watches. */
    fit?: ((size: { width: number; height: number }) => void) | undefined;
    log: Log;
  },
): WebSocketReceiver {
  const page = activePage(mux);
  const { client } = page;
  let over = false;
  let lastTitle: string | undefined;
  let timer: NodeJS.Timeout | undefined;
  let front: { targetId: string; sessionId: string } | undefined;
  const level = displayLevel(tell, () => sink.bufferedAmount);
  const box = files && viewerFiles({ files, tell, unsent: () => sink.bufferedAmount, dropAt });

  const choosers = box && fileChoosers(client, mux, ({ several, give }) => box.choose(give, several));

  function tell(message: DisplayMessage): void {
    if (over) return;
    sink.send([Buffer.from(JSON.stringify(message))]);
    sink.flush();
  }

  /** A place on the display, which shows the page below the browser's own bars. */
  function dropAt({ x, y }: { x: number; y: number }) {
    const sessionId = front?.sessionId;
    if (sessionId === undefined) return undefined;
    return async (paths: readonly string[]) => {
      const expression = '[screenX + outerWidth - innerWidth, screenY + outerHeight - innerHeight]';
      const question = { expression, returnByValue: true };
      const { result } = await client.ask(isEvaluated, 'Runtime.evaluate', question, sessionId);
      const [left = 0, top = 0] = isOrigin(result['value']) ? result['value'] : [];
      await drop(client, sessionId, { x: x - left, y: y - top }, paths);
    };
  }

  async function look(): Promise<void> {
    if (sink.bufferedAmount > MAX_UNREAD) return;
    front = await page.find();
    if (!front || over) return;
    await choosers?.watch(front);
    const { targetInfos } = await client.ask(isTargetList, 'Target.getTargets', { filter: [{ type: 'page' }] });
    const info = targetInfos.find(({ targetId }) => targetId === front?.targetId);
    const title = (info?.title || info?.url || '').slice(0, LONGEST_TITLE);
    if (title === lastTitle) return;
    lastTitle = title;
    tell({ type: 'title', title });
  }

  function again(): void {
    look()
      .catch((error: unknown) => over || log.debug({ error }, 'display.page_unknown'))
      .finally(() => {
        if (!over && client.closeCode === undefined) timer = setTimeout(again, EVERY_MS);
      });
  }
  again();
  const readOnly = !files && !fit;
  const beyond = viewerBounds(readOnly);

  return {
    receive(data, binary) {
      const isForDisplay = binary === true || data[0] !== BRACE;
      // Only the messages of a viewer that watches are parsed on the way to the display. A long clipboard of another is many messages.
      const fault = isForDisplay && !readOnly ? undefined : beyond(data);
      if (fault) return sink.close(fault.code, fault.reason);
      if (isForDisplay) return display.receive(data, binary);
      const message = readViewerMessage(data, readOnly);
      if (message?.type === 'ack') level.answered();
      else if (message?.type === 'fit') fit?.(message);
      else if (message && isAboutFiles(message)) box?.take(message);
    },
    flush: () => display.flush(),
    closed() {
      over = true;
      clearTimeout(timer);
      level.close();
      box?.close();
      page.close();
      display.closed();
    },
  };
}

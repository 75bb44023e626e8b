import { integer, object, oneOf, text } from '../../lib/shape.ts';
import type { LocalClient } from '../cdp/local-client.ts';
import type { Mux } from '../cdp/mux.ts';
import { isAttached, isTargetInfo } from '../cdp/shapes.ts';
import type { Taker } from './viewer-files.ts';

const isChooser = object({
  mode: oneOf('selectSingle', 'selectMultiple'),
  backendNodeId: integer(1, 2 ** 31),
});
const isAttachedTo = object({ sessionId: text(128), targetInfo: isTargetInfo });
/** A page in front of a person has few frames with a process of their own. */
const MOST_SESSIONS = 200;

/**
 * Reports the dialogs for files that Chromium would open for a page, and for those of its frames that have a process of their own. Chromium
 * forgets that when the client leaves. A dialog that a client of the session takes itself is not reported.
 */
export function fileChoosers(
  client: LocalClient,
  mux: Pick<Mux, 'choosesFiles'>,
  onChooser: (chooser: { pageSession: string; several: boolean; give: Taker }) => void,
) {
  /** The sessions that report, each with its target and the session of its page. */
  const asked = new Map<string, { targetId: string; pageSession: string }>();
  /** Frames that are being asked. */
  const asking = new Set<Promise<void>>();

  client.on('Page.fileChooserOpened', isChooser, ({ mode, backendNodeId }, sessionId) => {
    const place = asked.get(sessionId ?? '');
    if (!place || mux.choosesFiles(place.targetId)) return;
    const give: Taker = (paths) =>
      client.send('DOM.setFileInputFiles', { files: [...paths], backendNodeId }, sessionId);
    onChooser({ pageSession: place.pageSession, several: mode === 'selectMultiple', give });
  });
  client.on('Target.attachedToTarget', isAttachedTo, ({ sessionId, targetInfo: { type, targetId } }, from) => {
    const parent = asked.get(from ?? '');
    if (!parent || type !== 'iframe') return;
    const work = ask(sessionId, targetId, parent.pageSession)
      .catch(() => {}) // the frame was removed
      .finally(() => asking.delete(work));
    asking.add(work);
  });
  client.on('Target.detachedFromTarget', isAttached, ({ sessionId }) => void asked.delete(sessionId));

  async function ask(sessionId: string, targetId: string, pageSession: string): Promise<void> {
    if (asked.has(sessionId) || asked.size >= MOST_SESSIONS) return;
    asked.set(sessionId, { targetId, pageSession });
    const frames = { autoAttach: true, waitForDebuggerOnStart: false, flatten: true, filter: [{ type: 'iframe' }] };
    try {
      await Promise.all([
        client.send('Page.enable', {}, sessionId),
        client.send('Page.setInterceptFileChooserDialog', { enabled: true }, sessionId),
        client.send('Target.setAutoAttach', frames, sessionId),
      ]);
    } catch (error) {
      asked.delete(sessionId); // the next call tries again
      throw error;
    }
  }

  return {
    /** Resolves when the page reports, and the frames that it has. Does nothing for a page that reports already. */
    async watch({ targetId, sessionId }: { targetId: string; sessionId: string }): Promise<void> {
      await ask(sessionId, targetId, sessionId);
      await Promise.all(asking); // Chromium reports these before it answers
    },
  };
}

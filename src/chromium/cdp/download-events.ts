import { byteLength, readDownload, stripSession, toKeep, withFilePath } from './message.ts';
import type { Message } from './pipe.ts';
import type { Session } from './session.ts';
import type { Switchboard } from './switchboard.ts';

/** Once the events that wait have this many bytes, others are delivered at once. Only a compromised browser sends so many. */
const MOST_BYTES = 16 * 1024 * 1024;

/**
 * Handles download events. Returns true for an event that it delivers later: the event of a complete download is sent to the client after
 * the file has its final name.
 */
export function downloadEvents(board: Switchboard): (message: Message, session: Session | undefined) => boolean {
  const { sessions } = board;
  let waitingBytes = 0;

  return (message, session) => {
    const download = readDownload(message);
    if (!download) return false;
    const { guid, name, complete } = download;
    if (name !== undefined) board.downloads!.begun(guid, name);
    if (!complete) return false;
    const kept = board.downloads!.complete(guid);
    if (!session) return true;
    if (waitingBytes > MOST_BYTES) return false;
    const event = toKeep(message);
    const bytes = byteLength(event);
    waitingBytes += bytes;
    void kept.then((path) => {
      waitingBytes -= bytes;
      if (sessions.get(session.id) !== session) return; // already detached
      if (path !== undefined) withFilePath(event, path);
      if (session === session.owner.root) stripSession(event, session.id);
      session.owner.deliver(event, byteLength(event));
      board.flush();
    });
    return true;
  };
}

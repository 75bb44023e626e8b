import { closeSync, constants, fstatSync, openSync } from 'node:fs';
import net from 'node:net';

/**
 * What the service does, from outside, with things that a session can change. A name is resolved once at most and no link is followed;
 * after that the thing is reached by a descriptor, which means the same thing whatever happens to the name.
 */

/** Linux; Node has no name for it. The descriptor stands for the thing and cannot be read. */
const O_PATH = 0o10000000;

/** A unix socket that is connected to by what it is, not by what it is called. */
export interface PinnedSocket {
  /** After `close` the connection fails at once. */
  connect(): net.Socket;
  close(): void;
}

/** Whoever puts another socket or a link in the place of `path` after this changes nothing. */
export function pinSocket(path: string): PinnedSocket {
  let pinned: number | undefined = openSync(path, O_PATH | constants.O_NOFOLLOW);
  const close = () => {
    if (pinned !== undefined) closeSync(pinned);
    pinned = undefined;
  };
  if (!fstatSync(pinned).isSocket()) {
    close();
    throw new Error(`${path} is not a socket.`);
  }
  return {
    // The number of a closed descriptor may be another session's by now, so it is not used any more.
    connect: () =>
      pinned === undefined
        ? new net.Socket().destroy(new Error('The socket is closed.'))
        : net.connect({ path: `/proc/self/fd/${pinned}` }),
    close,
  };
}

import type { Duplex } from 'node:stream';
import type { Stream } from '../channel.ts';

/** Connects a socket inside the session to a stream of the service, until either is closed. */
export async function relay(socket: Duplex, stream: Stream): Promise<void> {
  socket.on('error', () => {});
  socket.once('close', () => stream.reset());
  const up = (async () => {
    for await (const chunk of socket) await stream.bytes(chunk as Buffer);
  })();
  const down = (async () => {
    for (let item; (item = await stream.next());) {
      if (item.bytes && !socket.write(item.bytes))
        await new Promise((resolve) => socket.once('drain', resolve).once('close', resolve));
    }
  })();
  await Promise.race([up, down]).catch(() => {});
  socket.destroy();
  stream.reset();
  await Promise.allSettled([up, down]);
}

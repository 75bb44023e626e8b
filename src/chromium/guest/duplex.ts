import { Duplex } from 'node:stream';
import type { Stream } from './channel.ts';

/** A stream of the guest as a socket, for Node's HTTP. It carries bytes; anything else on it is left out. */
export function duplexOf(stream: Stream): Duplex {
  let reading = false;

  async function pull(): Promise<void> {
    for (let item; (item = await stream.next());)
      if (item.bytes && !duplex.push(item.bytes)) {
        reading = false;
        return;
      }
    duplex.push(null);
  }

  const duplex = new Duplex({
    read() {
      if (reading) return;
      reading = true;
      pull().catch((error: Error) => duplex.destroy(error));
    },
    write(chunk: Buffer, _encoding, done) {
      stream.bytes(chunk).then(() => done(), done);
    },
    final(done) {
      stream.end();
      done();
    },
    destroy(error, done) {
      stream.reset();
      done(error);
    },
  });
  duplex.on('error', () => {}); // Node's HTTP listens too, but not at every moment
  return duplex;
}

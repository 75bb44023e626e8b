import type { Readable, Writable } from 'node:stream';
import { object, record, text, type Checked } from '../../lib/shape.ts';

/** The answer to CDP's `Browser.getVersion`. */
export type BrowserVersion = Readonly<Checked<typeof isVersion>>;

const word = text(1000);
const isVersion = object({
  product: word,
  protocolVersion: word,
  userAgent: word,
  revision: word,
  jsVersion: word,
});

/** The first messages are a few kilobytes. */
const MOST_UNREAD = 4 * 1024 * 1024;

/**
 * The first messages on a debugging pipe: resolves when the browser has answered and has a page. The full browser answers before it has
 * opened a window, and a client that connects then finds no page. Leaves the pipe as it was: nothing enabled, nothing unread.
 */
export function hello(toBrowser: Writable, fromBrowser: Readable): Promise<BrowserVersion> {
  const say = (id: number, method: string, params = {}) =>
    toBrowser.write(`${JSON.stringify({ id, method, params })}\0`);

  return new Promise((resolve, reject) => {
    let version: BrowserVersion | undefined;
    let seen = false;
    let unread: Buffer[] = [];

    const onMessage = (message: unknown) => {
      const { id, method, result, error } = record(message) ? message : {};
      if (record(error))
        return finish(() => reject(new Error(`it answered ${String(error['message']).slice(0, 1000)}`)));
      if (id === 1) {
        if (!isVersion(result)) return finish(() => reject(new Error('it did not report its version.')));
        version = result;
      }
      if (method === 'Target.targetCreated' && !seen) {
        seen = true;
        say(3, 'Target.setDiscoverTargets', { discover: false });
      }
      if (id === 3 && version) {
        const said = version;
        finish(() => resolve(said));
      }
    };
    // Not 'data': a stream that flowed and was paused does not flow for the next listener.
    const onReadable = () => {
      for (let part: Buffer | null = fromBrowser.read(); part !== null; part = fromBrowser.read()) unread.push(part);
      if (unread.reduce((sum, part) => sum + part.length, 0) > MOST_UNREAD) {
        return finish(() => reject(new Error('it speaks without end.')));
      }
      const messages = Buffer.concat(unread).toString().split('\0');
      unread = [Buffer.from(messages.pop()!)];
      for (const text of messages) {
        try {
          onMessage(JSON.parse(text));
        } catch (error) {
          return finish(() => reject(new Error('it speaks something else than CDP.', { cause: error })));
        }
      }
    };
    const onEnd = () => finish(() => reject(new Error('it closed its debugging pipe.')));
    const finish = (settle: () => void) => {
      fromBrowser.off('readable', onReadable).off('end', onEnd);
      settle();
    };

    fromBrowser.on('readable', onReadable).on('end', onEnd);
    say(1, 'Browser.getVersion');
    say(2, 'Target.setDiscoverTargets', { discover: true, filter: [{ type: 'page' }] });
  });
}

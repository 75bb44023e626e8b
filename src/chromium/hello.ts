import type { Readable, Writable } from 'node:stream';

/** What a browser says about itself (CDP `Browser.getVersion`). */
export interface BrowserVersion {
  readonly product: string;
  readonly protocolVersion: string;
  readonly userAgent: string;
  readonly revision: string;
  readonly jsVersion: string;
}

/** Of the messages that can come, what is looked at: one has a version for its result, the others nothing. */
interface Message {
  id?: number;
  method?: string;
  result?: BrowserVersion;
  error?: { message: string };
}

/**
 * The first words on a debugging pipe: resolves when the browser answers and its page is there. The full browser answers before it has
 * opened a window, and a client that came then would find no page. Leaves the pipe as it was: nothing enabled, nothing unread.
 */
export function hello(toBrowser: Writable, fromBrowser: Readable): Promise<BrowserVersion> {
  const say = (id: number, method: string, params = {}) =>
    toBrowser.write(`${JSON.stringify({ id, method, params })}\0`);

  return new Promise((resolve, reject) => {
    let version: BrowserVersion | undefined;
    let seen = false;
    let unread: Buffer[] = [];

    const onMessage = ({ id, method, result, error }: Message) => {
      if (error) return finish(() => reject(new Error(`it answered ${error.message}`)));
      if (id === 1) version = result;
      if (method === 'Target.targetCreated' && !seen) {
        seen = true;
        say(3, 'Target.setDiscoverTargets', { discover: false });
      }
      if (id === 3) finish(() => resolve(version!));
    };
    // Not 'data': a stream that once flowed and was paused would not flow for whoever listens next.
    const onReadable = () => {
      for (let part: Buffer | null = fromBrowser.read(); part !== null; part = fromBrowser.read()) unread.push(part);
      const messages = Buffer.concat(unread).toString().split('\0');
      unread = [Buffer.from(messages.pop()!)];
      for (const text of messages) {
        try {
          onMessage(JSON.parse(text) as Message);
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

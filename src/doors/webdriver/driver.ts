import { existsSync } from 'node:fs';
import http, { type IncomingMessage } from 'node:http';
import { duplexOf } from '../../chromium/guest/duplex.ts';
import { DriverReady } from '../../chromium/guest/protocol.ts';
import { within } from '../../lib/deadline.ts';
import { isLight } from '../../lib/json-weight.ts';
import { inside, nextOf } from '../../sessions/inside.ts';
import type { Hold } from '../../sessions/holds.ts';
import { WebDriverFault } from './fault.ts';

/** Below /usr, which sessions see. */
const PLACES = [
  '/usr/bin/chromedriver',
  '/usr/lib/chromium/chromedriver',
  '/usr/lib64/chromium-browser/chromedriver',
  '/usr/local/bin/chromedriver',
];
const START_MS = 45_000;
/** The longest that a command may take. Clients set the time of a page load or a script themselves, below this. */
const COMMAND_MS = 60 * 60_000;
/** Of an answer that is read here; others are passed on as they come. */
const MOST_READ = 1024 * 1024;
/** Of names and values in such an answer: the handles of windows, or capabilities. */
const MOST_VALUES = 10_000;

/** Looked for each time, so that an installation is noticed without a restart. */
export const findDriver = () => PLACES.find((path) => existsSync(path));

export interface Command {
  method: string;
  /** As chromedriver knows it. */
  path: string;
  body?: Buffer | undefined;
}

export type Driver = Awaited<ReturnType<typeof startDriver>>;

/**
 * A chromedriver inside a session, as long as its stream is open: until it exits, the guest or the browser ends, or the session does.
 * What it answers is not trusted, as nothing from inside a session is.
 */
export async function startDriver({ engine: { guest } }: Hold, program: string) {
  return inside(async () => {
    const stream = await guest.open('driver', { program });
    stream.end();
    let over = false;
    try {
      const ready = within(START_MS, 'The chromedriver of the session', nextOf(guest, DriverReady, stream));
      const { pid, port, debugger_port } = await ready;
      guest.started.add(pid);
      const ended = stream
        .next()
        .catch(() => undefined)
        .then(() => {
          over = true;
          if (!stream.gone.aborted) guest.started.delete(pid);
          stream.reset();
        });

      return {
        /** Where it finds the browser. */
        debuggerAddress: `127.0.0.1:${debugger_port}`,
        /** Never rejects. */
        ended,
        get over() {
          return over;
        },

        /** Sends one request. The answer is still arriving. */
        async ask({ method, path, body }: Command, signal: AbortSignal): Promise<IncomingMessage> {
          const connection = duplexOf(await guest.open('dial', { port }, signal));
          const late = setTimeout(() => connection.destroy(), COMMAND_MS);
          connection.once('close', () => clearTimeout(late));
          let answered = false;
          return new Promise<IncomingMessage>((resolve, reject) => {
            const headers = {
              host: `127.0.0.1:${port}`,
              'content-type': 'application/json; charset=utf-8',
              ...(method === 'GET' || method === 'DELETE' ? {} : { 'content-length': body?.length ?? 0 }),
            };
            const request = http.request({ method, path, headers, createConnection: () => connection });
            request.once('response', (response) => {
              answered = true;
              response.once('close', () => connection.destroy());
              resolve(response);
            });
            const failed = (cause?: Error) => {
              connection.destroy();
              const ended = new WebDriverFault('unknown error', 'The driver ended before it answered.', { cause });
              reject(signal.aborted ? (signal.reason as Error) : ended);
            };
            request.on('error', failed);
            request.once('close', () => answered || failed()); // without an error, where the driver answered something else than HTTP has
            request.end(method === 'GET' || method === 'DELETE' ? undefined : body);
          });
        },

        /** Ends it. */
        close: () => stream.reset(),
      };
    } catch (error) {
      stream.reset();
      throw error;
    }
  });
}

/** The value of an answer that is read whole. */
export async function valueOf(response: IncomingMessage): Promise<unknown> {
  const pieces: Buffer[] = [];
  let size = 0;
  try {
    for await (const piece of response as AsyncIterable<Buffer>) {
      size += piece.length;
      if (size > MOST_READ)
        throw new WebDriverFault(
          'unknown error',
          `The driver of the session answered with more than ${MOST_READ} bytes.`,
        );
      pieces.push(piece);
    }
  } catch (error) {
    if (error instanceof WebDriverFault) throw error;
    throw new WebDriverFault('unknown error', 'The driver ended before it answered.', { cause: error });
  }
  const whole = Buffer.concat(pieces);
  if (!isLight(whole, MOST_VALUES))
    throw new WebDriverFault('unknown error', 'The driver of the session answered with too many values.');
  try {
    const said = JSON.parse(whole.toString()) as { value?: unknown } | null;
    return said?.value;
  } catch (error) {
    throw new WebDriverFault('unknown error', 'The driver of the session sent an answer that is not JSON.', {
      cause: error,
    });
  }
}

import { Readable } from 'node:stream';
import { anyText, flag, object, optional, type Checked } from '../../lib/shape.ts';
import type { HiddenPage } from './hidden-pages.ts';
import { TransportError } from './net-errors.ts';

const FIRST_PIECE = 4 * 1024;
const LARGEST_PIECE = 512 * 1024;
/** How many bytes of an event stream are requested ahead. */
const AHEAD = 512;

const isPiece = object({ data: anyText, base64Encoded: optional(flag), eof: flag });
type Piece = Checked<typeof isPiece>;

/**
 * The body behind a handle of CDP's IO domain. Chromium answers a read when it has all the requested bytes, so the pieces grow: the first
 * arrives soon, the later ones fast. Of event streams, where the next byte may be a minute away, single bytes are requested, many at a
 * time.
 */
export function bodyStream(
  page: HiddenPage,
  handle: string,
  headers: readonly (readonly [string, string])[],
  /** Whether `content-length` is the length of this body, and not of a body that is left out (as after HEAD). */
  isWhole: boolean,
): Readable {
  const header = (name: string) => headers.find(([given]) => given.toLowerCase() === name)?.[1];
  const inEvents = /^(text\/event-stream|application\/(x-ndjson|jsonl|stream\+json))\b/i.test(
    header('content-type') ?? '',
  );
  const expected =
    isWhole && header('content-encoding') === undefined ? Number(header('content-length') ?? Number.NaN) : Number.NaN;
  let arrived = 0;
  let size = inEvents ? 1 : FIRST_PIECE;
  let asked = 0;
  let full = false;
  let ended = false;
  let gathered: Buffer[] = [];

  const body = new Readable({
    highWaterMark: LARGEST_PIECE,
    read() {
      full = false;
      askOn();
    },
  });
  body.on('error', () => {}); // readers get the error; without a reader it does not matter
  return body;

  function askOn(): void {
    for (const most = inEvents ? AHEAD : 1; asked < most && !full && !body.destroyed && !body.readableEnded;) {
      asked += 1;
      page.ask(isPiece, 'IO.read', { handle, size }, { patient: true }).then(take).catch(broken);
    }
  }

  function take({ data, base64Encoded, eof }: Piece): void {
    asked -= 1;
    if (body.destroyed || ended) return;
    if (data !== '') gathered.push(Buffer.from(data, base64Encoded ? 'base64' : 'utf8'));
    if (eof || !inEvents) return handOver(eof);
    if (gathered.length === 1) setImmediate(handOver, false); // the bytes of one event arrive one after the other
    askOn();
  }

  function handOver(eof: boolean): void {
    const piece = Buffer.concat(gathered);
    gathered = [];
    if (body.destroyed || ended) return;
    arrived += piece.length;
    if (!inEvents) size = Math.min(size * 2, LARGEST_PIECE);
    if (piece.length > 0) full = !body.push(piece);
    if (eof) end();
    else if (!full) askOn();
  }

  function end(): void {
    ended = true;
    // Chromium ends a truncated body like a complete one.
    if (arrived < expected) broken();
    else body.push(null);
  }

  function broken(): void {
    body.destroy(new TransportError('The answer broke off before its end.', 'ERR_CONNECTION_CLOSED'));
  }
}

import { Readable } from 'node:stream';
import { anyText, flag, object, optional, type Checked } from '../../lib/shape.ts';
import type { HiddenPage } from './hidden-pages.ts';
import { TransportError } from './net-errors.ts';

const FIRST_PIECE = 4 * 1024;
const LARGEST_PIECE = 512 * 1024;
/** How many bytes of an event stream are requested ahead. */
const AHEAD = 512;

type Headers = readonly (readonly [string, string])[];

const valuesOf = (headers: Headers, name: string) =>
  headers.flatMap(([given, value]) => (given.toLowerCase() === name ? [value] : []));

/**
 * The length of the body of an answer, as Chromium reads it. Undefined where `content-length` says nothing about it: Chromium ignores it beside
 * `transfer-encoding`, decodes the body, or cannot read it.
 */
export function announcedLength(headers: Headers): number | undefined {
  const [length, ...others] = new Set(valuesOf(headers, 'content-length').map((value) => value.trim()));
  if (length === undefined || others.length > 0 || !/^\d{1,15}$/.test(length)) return undefined;
  const isCoded = ['transfer-encoding', 'content-encoding'].some((name) => valuesOf(headers, name).length > 0);
  return isCoded ? undefined : Number(length);
}

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
  headers: Headers,
  /** Whether there is a body. After HEAD it is left out, and `content-length` is the length that it would have. */
  hasBody: boolean,
): Readable {
  const inEvents = /^(text\/event-stream|application\/(x-ndjson|jsonl|stream\+json))\b/i.test(
    valuesOf(headers, 'content-type')[0] ?? '',
  );
  const length = hasBody ? (announcedLength(headers) ?? Infinity) : 0;
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
    if (arrived === length) return end();
    for (const most = inEvents ? AHEAD : 1; asked < most && !full && !body.destroyed && !body.readableEnded;) {
      asked += 1;
      page
        .ask(isPiece, 'IO.read', { handle, size }, { patient: true })
        .then(take)
        .catch(() => ended || broken());
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
    // A site may send more than it announces. The rest would be taken for the answer to the client's next request.
    const piece = Buffer.concat(gathered).subarray(0, length - arrived);
    gathered = [];
    if (body.destroyed || ended) return;
    arrived += piece.length;
    if (!inEvents) size = Math.min(size * 2, LARGEST_PIECE);
    if (piece.length > 0) full = !body.push(piece);
    if (eof || arrived === length) end();
    else if (!full) askOn();
  }

  function end(): void {
    if (ended) return;
    ended = true;
    // Chromium ends a truncated body like a complete one.
    if (length !== Infinity && arrived < length) broken();
    else body.push(null);
  }

  function broken(): void {
    body.destroy(new TransportError('The answer broke off before its end.', 'ERR_CONNECTION_CLOSED'));
  }
}

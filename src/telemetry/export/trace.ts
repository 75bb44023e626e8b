import { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import yazl from 'yazl';
import { telemetryCategories, type EventCategory } from '../../lib/telemetry.ts';
import { turns } from '../../lib/turns.ts';
import { exchanges, type Exchange } from './exchanges.ts';
import { textIn, type EventSource, type Keep, type StoredEvent } from './source.ts';
import {
  bodyName,
  contextLine,
  networkLine,
  screenshotName,
  traceLines,
  type AboutTrace,
  type Line,
} from './trace-lines.ts';

/**
 * Bodies that get a file of their own. The archive's list of files is kept in memory until it is written, at the end; later
 * requests are listed without their bodies.
 */
const mostBodies = 5000;

const pieceLength = 64 * 1024;

/** The categories that are listed and shown. Network events are read apart, since they have a separate file. */
const shown: EventCategory[] = [...telemetryCategories.filter((category) => category !== 'network'), 'monitor'];

/** How far the first readings went: the last reading has to find every picture and body that they name, and no more. */
interface Reading {
  picture: number;
  body: number;
}

/**
 * A Playwright trace, as a zip. Its files are in sequence, so the archive is read once for each kind of file, and
 * memory holds one event at a time.
 */
export function traceZip(source: EventSource, about: AboutTrace, keep?: Keep): Readable {
  const zip = new yazl.ZipFile();
  const output = zip.outputStream as Readable;
  const reading: Reading = { picture: 0, body: 0 };
  let writing: Readable | undefined;
  zip.on('error', (error) => output.destroy(error as Error));
  // A client that leaves closes the output. The reading of the archive then ends too.
  output.once('close', () => writing?.destroy());

  /** Writes one file, and waits until the client has taken it. */
  async function add(name: string, content: Iterable<Buffer> | AsyncIterable<string>, compress: boolean) {
    if (output.destroyed) throw new Error('The client has left.');
    writing = Readable.from(content, { objectMode: false });
    writing.once('error', (error) => output.destroy(error));
    zip.addReadStream(writing, name, { compress });
    await finished(writing);
  }

  void (async () => {
    await add('trace.trace', mainFile(source, about, reading), true);
    await add('trace.network', networkFile(source, about, reading, keep), true);
    for await (const { name, content, compress } of resources(source, about, reading))
      await add(`resources/${name}`, [content], compress);
    zip.end();
  })().catch((error: Error) => output.destroy(error));
  return output;
}

async function* mainFile(source: EventSource, about: AboutTrace, reading: Reading): AsyncGenerator<string> {
  const lines = traceLines();
  const text = pieces();
  const turn = turns();
  let begun = false;
  for await (const stored of source.read(about.sessionId, { categories: shown })) {
    if (!begun) text.add(contextLine(about, stored.event));
    begun = true;
    for (const line of lines.take(stored)) text.add(line);
    if (stored.event.category === 'screenshot') reading.picture = stored.seq;
    await turn();
    if (text.full()) yield text.take();
  }
  if (!begun) text.add(contextLine(about, undefined));
  for (const line of lines.rest()) text.add(line);
  yield text.take();
}

async function* networkFile(
  source: EventSource,
  about: AboutTrace,
  reading: Reading,
  keep?: Keep,
): AsyncGenerator<string> {
  const paired = exchanges();
  const text = pieces();
  const turn = turns();
  let bodies = 0;
  const add = (exchange: Exchange) => {
    const kept = exchange.outcome.kind === 'answered' && bodyIn(exchange.outcome.data) && bodies < mostBodies;
    if (kept) {
      bodies++;
      reading.body = exchange.seq;
    }
    text.add(networkLine(exchange, kept ? bodyName(exchange.seq) : undefined));
  };
  async function* listed(found: Iterable<Exchange>): AsyncGenerator<string> {
    for (const exchange of found) {
      add(exchange);
      await turn();
      if (text.full()) yield text.take();
    }
  }
  for await (const stored of source.read(about.sessionId, { categories: ['network', 'page', 'monitor'] })) {
    yield* listed(paired.take(stored));
    await keep?.(paired.bytes());
    await turn();
  }
  yield* listed(paired.rest());
  if (!text.empty()) yield text.take();
}

interface Resource {
  name: string;
  content: Buffer;
  compress: boolean;
}

async function* resources(source: EventSource, about: AboutTrace, reading: Reading): AsyncGenerator<Resource> {
  const turn = turns();
  for await (const stored of source.read(about.sessionId, { categories: ['screenshot', 'network'] })) {
    await turn();
    if (stored.seq > Math.max(reading.picture, reading.body)) return;
    const { type, data } = stored.event;
    const [png, body] = [textIn(data, 'png'), bodyIn(data)];
    if (type === 'monitor_screenshot' && png && stored.seq <= reading.picture)
      yield { name: screenshotName(stored.seq), content: Buffer.from(png, 'base64'), compress: false };
    else if (type === 'network_response' && body && stored.seq <= reading.body)
      yield { name: bodyName(stored.seq), content: Buffer.from(body), compress: true };
  }
}

/** An answer without a body has none of its own in the archive either. */
function bodyIn(data: StoredEvent['event']['data']): string | undefined {
  return textIn(data, 'body') || undefined;
}

/** Lines are handed on in pieces: one for each line would cost more than the line. */
function pieces() {
  let text = '';
  return {
    add: (line: Line) => void (text += `${JSON.stringify(line)}\n`),
    full: () => text.length >= pieceLength,
    empty: () => text === '',
    take() {
      const piece = text;
      text = '';
      return piece;
    },
  };
}

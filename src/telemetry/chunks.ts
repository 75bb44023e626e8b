import { promisify } from 'node:util';
import { deflateRaw, inflateRaw } from 'node:zlib';
import { headOf } from './record.ts';

/** Lines that were written together. Their numbers have no gap, so the place of a line in its chunk says its number. */
export interface Chunk {
  firstSeq: number;
  lastSeq: number;
  /** The earliest and the latest time of an event, in microseconds. Times need not rise with the numbers. */
  fromUs: number;
  toUs: number;
  /** Which categories are in it. */
  mask: number;
  /** Bytes before packing. */
  rawBytes: number;
  packed: Buffer;
}

/** A chunk that is not packed yet. */
export type LooseChunk = Omit<Chunk, 'packed'> & { lines: string[] };

/** The archive is written while browsers run, so processor time counts more than the last per cent of space. */
const level = 3;
const deflate = promisify(deflateRaw);
const inflate = promisify(inflateRaw);
/** A chunk is a quarter of a megabyte, or one record, unless the row was damaged. */
const mostUnpacked = 16 * 2 ** 20;

export function gather(lines: string[], rawBytes: number): LooseChunk {
  const heads = lines.map(headOf);
  return {
    firstSeq: heads[0]!.seq,
    lastSeq: heads.at(-1)!.seq,
    fromUs: heads.reduce((least, { ts }) => Math.min(least, ts), Infinity),
    toUs: heads.reduce((most, { ts }) => Math.max(most, ts), 0),
    mask: heads.reduce((all, { mask }) => all | mask, 0),
    rawBytes,
    lines,
  };
}

/** In a separate thread, without blocking the event loop. */
export async function pack({ lines, ...rest }: LooseChunk): Promise<Chunk> {
  return { ...rest, packed: await deflate(lines.join('\n'), { level }) };
}

export async function unpack(packed: Buffer): Promise<string[]> {
  return (await inflate(packed, { maxOutputLength: mostUnpacked })).toString().split('\n');
}

/** One chunk of several that follow each other. Many small ones take more room, and more rows. */
export async function merge(chunks: readonly Chunk[]): Promise<Chunk> {
  const lines = (await Promise.all(chunks.map(({ packed }) => unpack(packed)))).flat();
  return pack(
    gather(
      lines,
      chunks.reduce((sum, { rawBytes }) => sum + rawBytes, 0),
    ),
  );
}

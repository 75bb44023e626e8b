import { Pieces } from '../../lib/pieces.ts';

/** A part of a fragmented MP4 that can be played alone: it starts with a key frame. */
export interface Fragment {
  readonly bytes: Buffer;
  /** Its start, in units of its track's timescale. */
  readonly time: number;
}

/** Beside its length, a box has a type. */
const BOX_HEAD = 8;
/** A longer box is skipped, and what belongs to it: ffmpeg reads pictures of a page, so what it writes is not trusted. */
const LONGEST_BOX = 64 * 1024 * 1024;

/**
 * Cuts the stream of a fragmented MP4 into its head (`ftyp`, `moov`) and its fragments (`moof`, `mdat`). The pieces of a box are joined once,
 * when all of it is there: a fragment of a large display has tens of megabytes.
 */
export function fragmentReader(onHead: (head: Head) => void, onFragment: (fragment: Fragment) => void) {
  const unread = new Pieces();
  let needed = BOX_HEAD;
  let skipped = 0;
  let gathered: Buffer[] = [];

  function take(box: Buffer): void {
    gathered.push(box);
    const type = box.toString('latin1', 4, BOX_HEAD);
    if (type !== 'moov' && type !== 'mdat') return;
    const bytes = Buffer.concat(gathered);
    gathered = [];
    if (type === 'moov') onHead({ bytes, timescale: bytes.readUInt32BE(bytes.indexOf('mdhd') + 16) });
    else onFragment({ bytes, time: timeOf(bytes) });
  }

  return (data: Buffer) => {
    const passed = Math.min(skipped, data.length);
    skipped -= passed;
    unread.add(data.subarray(passed));
    while (unread.length >= needed) {
      let rest = unread.take();
      needed = BOX_HEAD;
      while (rest.length >= needed) {
        const size = rest.readUInt32BE(0);
        if (size < BOX_HEAD || size > LONGEST_BOX) {
          // Without a length, the rest of the stream cannot be cut.
          skipped = Math.max(0, (size < BOX_HEAD ? Infinity : size) - rest.length);
          rest = rest.subarray(Math.min(size < BOX_HEAD ? Infinity : size, rest.length));
          gathered = [];
        } else if (rest.length < size) needed = size;
        else {
          take(rest.subarray(0, size));
          rest = rest.subarray(size);
        }
      }
      unread.add(rest);
    }
  };
}

export interface Head {
  readonly bytes: Buffer;
  /** Units per second. */
  readonly timescale: number;
}

function timeOf(bytes: Buffer): number {
  const at = bytes.indexOf('tfdt');
  return bytes[at + 4] === 1 ? Number(bytes.readBigUInt64BE(at + 8)) : bytes.readUInt32BE(at + 8);
}

/** The same fragment with another start time. */
export function atTime({ bytes }: Fragment, time: number): Buffer {
  const copy = Buffer.from(bytes);
  const at = copy.indexOf('tfdt');
  if (copy[at + 4] === 1) copy.writeBigUInt64BE(BigInt(time), at + 8);
  else copy.writeUInt32BE(time, at + 8);
  return copy;
}

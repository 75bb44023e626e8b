import { Pieces } from '../../lib/pieces.ts';

/** A part of a fragmented MP4 that can be played alone: it starts with a key frame. */
export interface Fragment {
  readonly bytes: Buffer;
  /** Its start, in units of its track's timescale. */
  readonly time: number;
  /** Where the start time is in its bytes: the position of a `tfdt`. */
  readonly timeAt: number;
}

export interface Head {
  readonly bytes: Buffer;
  /** Units per second. */
  readonly timescale: number;
}

/** Beside its length, a box has a type. */
const BOX_HEAD = 8;
/**
 * ffmpeg reads pictures of a page, so its output is not trusted. A longer box is skipped, and what belongs to it. Of the boxes that describe
 * a video or a fragment, ffmpeg writes one or two kilobytes. Fragments of a large display have tens of megabytes.
 */
const LONGEST_DESCRIPTION = 64 * 1024;
const LONGEST_DATA = 32 * 1024 * 1024;

/**
 * Cuts the stream of a fragmented MP4 into its head (`ftyp`, `moov`) and its fragments (`moof`, `mdat`), and drops everything else: other
 * boxes, a second head, fragments without a head or a time. The pieces of a box are joined once, when all of it is there.
 */
export function fragmentReader(onHead: (head: Head) => void, onFragment: (fragment: Fragment) => void) {
  const unread = new Pieces();
  let needed = BOX_HEAD;
  let skipped = 0;
  let hasHead = false;
  /** The last `ftyp` or `moof`. */
  let begun: Buffer | undefined;

  function take(type: string, box: Buffer): void {
    if (type === 'ftyp' || type === 'moof') begun = box;
    else if (type === 'moov' && !hasHead) takeHead(box);
    else if (type === 'mdat' && hasHead && begun) takeFragment(begun, box);
  }

  function takeHead(moov: Buffer): void {
    const timescaleAt = moov.indexOf('mdhd') + 16;
    if (timescaleAt < 16 || timescaleAt + 4 > moov.length) return;
    const timescale = moov.readUInt32BE(timescaleAt);
    if (timescale === 0) return;
    hasHead = true;
    onHead({ bytes: Buffer.concat(begun ? [begun, moov] : [moov]), timescale });
    begun = undefined;
  }

  function takeFragment(moof: Buffer, mdat: Buffer): void {
    begun = undefined;
    const timeAt = moof.indexOf('tfdt');
    if (timeAt === -1 || timeAt + 16 > moof.length) return;
    const time = moof[timeAt + 4] === 1 ? Number(moof.readBigUInt64BE(timeAt + 8)) : moof.readUInt32BE(timeAt + 8);
    onFragment({ bytes: Buffer.concat([moof, mdat]), time, timeAt });
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
        const type = rest.toString('latin1', 4, BOX_HEAD);
        if (size < BOX_HEAD || size > (type === 'mdat' ? LONGEST_DATA : LONGEST_DESCRIPTION)) {
          // Without a length, the rest of the stream cannot be cut.
          skipped = Math.max(0, (size < BOX_HEAD ? Infinity : size) - rest.length);
          rest = rest.subarray(Math.min(size < BOX_HEAD ? Infinity : size, rest.length));
          begun = undefined;
        } else if (rest.length < size) needed = size;
        else {
          take(type, rest.subarray(0, size));
          rest = rest.subarray(size);
        }
      }
      unread.add(rest);
    }
  };
}

/** Writes the start time of a fragment into a copy of its bytes. */
export function setTime(copy: Buffer, { timeAt }: Fragment, time: number): void {
  if (copy[timeAt + 4] === 1) copy.writeBigUInt64BE(BigInt(time), timeAt + 8);
  else copy.writeUInt32BE(Math.min(time, 2 ** 32 - 1), timeAt + 8);
}

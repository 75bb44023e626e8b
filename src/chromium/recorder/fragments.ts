/** A part of a fragmented MP4 that can be played by itself: it begins with a key frame. */
export interface Fragment {
  readonly bytes: Buffer;
  /** Its start, in units of its track's timescale. */
  readonly time: number;
}

/** Cuts the stream of a fragmented MP4 into its head (`ftyp`, `moov`) and its fragments (`moof`, `mdat`). */
export function fragmentReader(onHead: (head: Head) => void, onFragment: (fragment: Fragment) => void) {
  let unread: Buffer = Buffer.alloc(0);
  let gathered: Buffer[] = [];

  return (data: Buffer) => {
    unread = unread.length === 0 ? data : Buffer.concat([unread, data]);
    while (unread.length >= 8) {
      const size = unread.readUInt32BE(0);
      if (size < 8 || unread.length < size) return;
      const box = unread.subarray(0, size);
      unread = unread.subarray(size);
      gathered.push(box);
      const type = box.toString('latin1', 4, 8);
      if (type !== 'moov' && type !== 'mdat') continue;
      const bytes = Buffer.concat(gathered);
      gathered = [];
      if (type === 'moov') onHead({ bytes, timescale: bytes.readUInt32BE(bytes.indexOf('mdhd') + 16) });
      else onFragment({ bytes, time: timeOf(bytes) });
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

/** A box of an MP4 file. */
export function box(type: string, content: Buffer): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(8 + content.length);
  head.write(type, 4);
  return Buffer.concat([head, content]);
}

/** A head with a timescale of 1000. */
export const moov = box('moov', Buffer.concat([Buffer.from('mdhd'), Buffer.alloc(12), Buffer.from([0, 0, 3, 232])]));

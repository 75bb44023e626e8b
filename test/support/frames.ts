import type { Socket } from 'node:net';

export const TEXT = 1;
export const BINARY = 2;
export const CONTINUATION = 0;
export const CLOSE = 8;
export const PING = 9;
export const PONG = 10;

export interface FrameOptions {
  opcode?: number;
  final?: boolean;
  /** The three reserved bits, as they stand in the first byte. */
  rsv?: number;
  /** False: as a server sends them, which a client must not. */
  masked?: boolean;
  /** How the length is written, where it is not the shortest way. */
  lengthBytes?: 0 | 2 | 8;
  /** The length in the header, where it differs from the payload's. */
  claims?: number | bigint;
}

const MASK = Buffer.from([0x37, 0xfa, 0x21, 0x3d]);

/** One frame as a client sends it, or as it must not. */
export function frame(payload: string | Buffer, options: FrameOptions = {}): Buffer {
  const body = Buffer.from(payload);
  const { opcode = TEXT, final = true, rsv = 0, masked = true, claims = body.length } = options;
  const { lengthBytes = claims < 126 ? 0 : claims < 65_536 ? 2 : 8 } = options;
  const head = Buffer.alloc(2 + lengthBytes);
  head[0] = (final ? 0x80 : 0) | rsv | opcode;
  head[1] = (masked ? 0x80 : 0) | (lengthBytes === 0 ? Number(claims) : lengthBytes === 2 ? 126 : 127);
  if (lengthBytes === 2) head.writeUInt16BE(Number(claims), 2);
  if (lengthBytes === 8) head.writeBigUInt64BE(BigInt(claims), 2);
  if (!masked) return Buffer.concat([head, body]);
  return Buffer.concat([head, MASK, body.map((byte, at) => byte ^ MASK[at & 3]!)]);
}

/** A close frame; without a code, an empty one. */
export function close(code?: number, reason: string | Buffer = ''): Buffer {
  if (code === undefined) return frame('', { opcode: CLOSE });
  return frame(Buffer.concat([Buffer.from([code >> 8, code & 0xff]), Buffer.from(reason)]), { opcode: CLOSE });
}

export interface Heard {
  opcode: number;
  payload: Buffer;
}

/** What a server says on a bare socket, frame by frame. Throws when a frame is not as a server sends them. */
export function hears(socket: Socket) {
  let data = Buffer.alloc(0);
  let ended = false;
  socket.on('data', (chunk: Buffer) => (data = Buffer.concat([data, chunk])));
  socket.on('error', () => {});
  socket.once('end', () => (ended = true)).once('close', () => (ended = true));

  /** A reset connection ends like a closed one: frames that arrived before are still read. */
  const more = () =>
    new Promise<void>((resolve) => {
      const events = ['data', 'end', 'close'] as const;
      const wake = () => {
        for (const event of events) socket.off(event, wake);
        resolve();
      };
      for (const event of events) socket.on(event, wake);
    });

  function read(): Heard | undefined {
    if (data.length < 2) return undefined;
    const [first, second] = [data[0]!, data[1]!];
    if ((first & 0xf0) !== 0x80 || second >= 0x80)
      throw new Error(`not a server's frame: ${data.toString('hex', 0, 8)}`);
    const head = second < 126 ? 2 : second === 126 ? 4 : 10;
    if (data.length < head) return undefined;
    const length = second < 126 ? second : second === 126 ? data.readUInt16BE(2) : Number(data.readBigUInt64BE(2));
    if (data.length < head + length) return undefined;
    const heard = { opcode: first & 0x0f, payload: data.subarray(head, head + length) };
    data = data.subarray(head + length);
    return heard;
  }

  /** The next frame; undefined when the server ended the connection instead. */
  async function next(): Promise<Heard | undefined> {
    for (;;) {
      const heard = read();
      if (heard || ended) return heard;
      await more();
    }
  }

  return {
    next,
    /** The code and reason of the close frame, skipping what comes before it; undefined when there is none. */
    async close(): Promise<{ code: number | undefined; reason: string } | undefined> {
      for (;;) {
        const heard = await next();
        if (!heard) return undefined;
        if (heard.opcode !== CLOSE) continue;
        const code = heard.payload.length === 0 ? undefined : heard.payload.readUInt16BE();
        return { code, reason: heard.payload.toString('utf8', 2) };
      }
    },
    /** Resolves when the server has ended its side; what it said before that and was not asked for. */
    async end(): Promise<Buffer> {
      while (!ended) await more();
      return data;
    },
  };
}

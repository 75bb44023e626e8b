import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

const websocket = {
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
};

/** Asks for a websocket as a client library would, and answers with the refusal, or with the bare socket behind it. */
export async function upgrade(url: string, headers: Record<string, string | undefined> = {}) {
  const asked = request(url.replace(/^ws/, 'http'), { agent: false });
  for (const [name, value] of Object.entries({ ...websocket, ...headers })) {
    if (value !== undefined) asked.setHeader(name, value);
  }
  asked.end();
  return new Promise<
    | { status: 101; socket: Socket; body: undefined; text: '' }
    // oxlint-disable-next-line typescript/no-explicit-any -- what a service answers is for each test to judge
    | { status: number; socket: undefined; body: any; text: string }
  >((resolve, reject) => {
    asked.on('error', reject);
    asked.on('upgrade', (_answer: IncomingMessage, socket: Socket) =>
      resolve({ status: 101, socket: socket.on('error', () => {}), body: undefined, text: '' }),
    );
    asked.on('response', (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (part: string) => (text += part));
      answer.on('end', () => {
        const json = answer.headers['content-type']?.includes('json');
        resolve({ status: answer.statusCode ?? 0, socket: undefined, body: json ? JSON.parse(text) : undefined, text });
      });
    });
  });
}

/** One frame as a client sends it, masked with zeros, which change nothing. `claims` more bytes than it brings, if told. */
export function frame(
  payload: string | Buffer,
  { opcode = 1, claims = Buffer.byteLength(payload), final = true } = {},
): Buffer {
  const head = Buffer.alloc(14);
  head[0] = (final ? 0x80 : 0) | opcode;
  head[1] = 0x80 | 127;
  head.writeBigUInt64BE(BigInt(claims), 2);
  return Buffer.concat([head, Buffer.from(payload)]);
}

/** The close code and reason that arrive on a bare socket, skipping what comes before. */
export async function closeFrame(socket: Socket): Promise<{ code: number; reason: string }> {
  let data = Buffer.alloc(0);
  for (;;) {
    while (data.length >= 2) {
      const short = data[1]! & 0x7f;
      const head = short < 126 ? 2 : short === 126 ? 4 : 10;
      if (data.length < head) break;
      const length = short < 126 ? short : short === 126 ? data.readUInt16BE(2) : Number(data.readBigUInt64BE(2));
      if (data.length < head + length) break;
      const payload = data.subarray(head, head + length);
      if ((data[0]! & 0x0f) === 8) return { code: payload.readUInt16BE(), reason: payload.toString('utf8', 2) };
      data = data.subarray(head + length);
    }
    const [chunk] = (await once(socket, 'data')) as [Buffer];
    data = Buffer.concat([data, chunk]);
  }
}

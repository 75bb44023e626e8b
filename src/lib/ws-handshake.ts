import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

const OUR_VERSION = '13';
const KEY = /^[+/0-9A-Za-z]{22}==$/; // 16 bytes in base64
const MAGIC = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

/** The server's answer to an opening handshake (RFC 6455, 4.2): the accept key, or why it opens no websocket. */
type HandshakeAnswer =
  { accept: string } | { accept?: undefined; status: 400 | 426; why: string; headers: Record<string, string> };

export function answerHandshake({ method, httpVersion, headers }: IncomingMessage): HandshakeAnswer {
  if (method !== 'GET') return refused(`A websocket is opened with GET, not with ${method}.`);
  if (Number(httpVersion) < 1.1) return refused('A websocket is opened with HTTP/1.1 or newer.');
  if (!wantsWebSocket(headers))
    return refused('A websocket is opened with Upgrade: websocket and Connection: Upgrade.');
  if (headers['sec-websocket-version'] !== OUR_VERSION) {
    return {
      status: 426,
      why: `Version ${OUR_VERSION} of the websocket protocol is spoken here (Sec-WebSocket-Version).`,
      headers: { 'Sec-WebSocket-Version': OUR_VERSION },
    };
  }
  const key = headers['sec-websocket-key'];
  if (key === undefined || !KEY.test(key)) return refused('Sec-WebSocket-Key has to be 16 bytes in base64.');
  return {
    accept: createHash('sha1')
      .update(key + MAGIC)
      .digest('base64'),
  };
}

/** Whether the client asks for a websocket, correctly or not. Both headers are case-insensitive lists of tokens. */
export function wantsWebSocket({ upgrade, connection }: IncomingMessage['headers']): boolean {
  return has(upgrade, 'websocket') && has(connection, 'upgrade');
}

const has = (list: string | undefined, token: string) =>
  list !== undefined && list.split(',').some((item) => item.trim().toLowerCase() === token);

const refused = (why: string) => ({ status: 400, why, headers: {} }) as const;

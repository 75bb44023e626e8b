import { request, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
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
    | { status: 101; socket: Socket; headers: IncomingHttpHeaders; body: undefined; text: '' }
    // oxlint-disable-next-line typescript/no-explicit-any -- what a service answers is for each test to judge
    | { status: number; socket: undefined; headers: IncomingHttpHeaders; body: any; text: string }
  >((resolve, reject) => {
    asked.on('error', reject);
    asked.on('upgrade', ({ headers }: IncomingMessage, socket: Socket, head: Buffer) => {
      if (head.length > 0) socket.unshift(head); // what the server said at once
      resolve({ status: 101, socket: socket.on('error', () => {}), headers, body: undefined, text: '' });
    });
    asked.on('response', (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (part: string) => (text += part));
      answer.on('end', () => {
        const json = answer.headers['content-type']?.includes('json');
        const { statusCode: status = 0, headers } = answer;
        resolve({ status, socket: undefined, headers, body: json ? JSON.parse(text) : undefined, text });
      });
    });
  });
}

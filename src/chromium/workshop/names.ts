import type net from 'node:net';
import { loopPace, nextTurn } from '../../lib/turns.ts';
import type { Listener } from '../sandbox/mounts.ts';

/** The DNS server of a cell, for names that its `etc/hosts` cannot list. No other listener has this address. */
export const NAMES: Listener = { address: '127.64.1.1', port: 53 };

/** Every name that ends like this has this address. */
interface Ending {
  readonly suffix: string;
  readonly address: string;
}

const MOST_CONNECTIONS = 32;
const IDLE_MS = 10_000;
/** Names have 255 bytes at most; a question has little else. */
const LONGEST_QUESTION = 512;
/** A piece of 64 KiB has 3,000 questions, which take 60 ms. So many are answered in one turn of the event loop. */
const ANSWERS_AT_ONCE = 32;
/** A client that asks and does not read is ended. */
const MOST_UNREAD = 64 * 1024;
const [A, INTERNET, NO_SUCH_NAME] = [1, 1, 3];
const TTL_SECONDS = 60;

/** Answers questions of DNS over TCP about these names; there is no other name. Returns the function that ends it. */
export function answerNames(server: net.Server, endings: readonly Ending[]): () => void {
  const sockets = new Set<net.Socket>();
  server.maxConnections = MOST_CONNECTIONS;
  server.on('error', () => {});
  server.on('connection', (socket) => {
    let unread: Buffer = Buffer.alloc(0);
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket)).on('error', () => {});
    socket.setTimeout(IDLE_MS, () => socket.destroy());

    async function answerAll(): Promise<void> {
      if (loopPace.isOver()) await nextTurn(server); // pieces of many connections may arrive in one turn
      while (!socket.destroyed) {
        const answered = answersTo(unread, endings);
        if (!answered || socket.writableLength > MOST_UNREAD) return void socket.destroy();
        unread = answered.rest;
        if (answered.bytes.length > 0) socket.write(answered.bytes);
        if (!answered.more) return void socket.resume();
        await nextTurn(server);
      }
    }
    socket.on('data', (piece: Buffer) => {
      unread = unread.length === 0 ? piece : Buffer.concat([unread, piece]);
      socket.pause();
      void answerAll();
    });
  });
  return () => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
}

/** Answers the first questions of these bytes. Undefined if they have something else. `more`: the rest has further questions. */
function answersTo(asked: Buffer, endings: readonly Ending[]) {
  const answers: Buffer[] = [];
  let at = 0;
  while (asked.length >= at + 2) {
    const end = at + 2 + asked.readUInt16BE(at);
    if (end - at - 2 > LONGEST_QUESTION) return undefined;
    if (asked.length < end) break;
    if (answers.length >= 2 * ANSWERS_AT_ONCE)
      return { bytes: Buffer.concat(answers), rest: asked.subarray(at), more: true };
    const answer = answerTo(asked.subarray(at + 2, end), endings);
    if (!answer) return undefined;
    answers.push(sixteen(answer.length), answer);
    at = end;
  }
  return { bytes: Buffer.concat(answers), rest: asked.subarray(at), more: false };
}

/** The answer to a question (RFC 1035, 4.1); undefined if the bytes are not a question. */
export function answerTo(asked: Buffer, endings: readonly Ending[]): Buffer | undefined {
  if (asked.length < 12 || (asked[2]! & 0xf8) !== 0 || asked.readUInt16BE(4) !== 1) return undefined;
  const labels: string[] = [];
  let at = 12;
  for (let length = asked[at]; length !== 0; length = asked[at]) {
    if (length === undefined || length > 63) return undefined; // cut off, or a pointer, which a question has no use for
    labels.push(asked.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  const end = at + 5;
  if (asked.length < end) return undefined;
  const name = labels.join('.').toLowerCase();
  const found = endings.find(({ suffix }) => name.endsWith(suffix) && name.length > suffix.length);
  const wanted = found && asked.readUInt16BE(at + 1) === A && asked.readUInt16BE(at + 3) === INTERNET;
  const flags = 0x8480 | (asked[2]! << 8) | (found ? 0 : NO_SUCH_NAME); // an answer, and the last word on it
  const head = Buffer.concat([asked.subarray(0, 2), ...[flags, 1, wanted ? 1 : 0, 0, 0].map(sixteen)]);
  if (!wanted) return Buffer.concat([head, asked.subarray(12, end)]);
  const record = Buffer.concat([...[0xc00c, A, INTERNET, 0, TTL_SECONDS, 4].map(sixteen), bytesOf(found.address)]);
  return Buffer.concat([head, asked.subarray(12, end), record]);
}

const sixteen = (value: number) => Buffer.from([value >> 8, value & 0xff]);
const bytesOf = (address: string) => Buffer.from(address.split('.').map(Number));

import { once } from 'node:events';
import net from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { answerNames, answerTo } from './names.ts';

const endings = [{ suffix: '.sessions.test', address: '127.64.0.2' }];

/** A question as glibc sends it: recursion desired, one name. */
function question(name: string, type: number): Buffer {
  const labels = name.split('.').flatMap((label) => [label.length, ...Buffer.from(label)]);
  return Buffer.from([0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, ...labels, 0, 0, type, 0, 1]);
}
const framed = (body: Buffer) => Buffer.concat([Buffer.from([body.length >> 8, body.length & 0xff]), body]);
const codeOf = (answer: Buffer) => ({ code: answer[3]! & 15, answers: answer.readUInt16BE(6) });

const closers: (() => void)[] = [];
afterEach(() => closers.splice(0).forEach((close) => close()));

async function listening(known = endings) {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  closers.push(answerNames(server, known));
  return (server.address() as net.AddressInfo).port;
}

function connect(port: number) {
  const client = net.connect(port, '127.0.0.1').on('error', () => {});
  closers.push(() => client.destroy());
  return client;
}

const open = async () => connect(await listening());

test('the name of a session has the address of its listener, and no other name has one', () => {
  const asked = question('Abc.Sessions.test', 1);
  const answer = answerTo(asked, endings)!;
  expect(codeOf(answer)).toEqual({ code: 0, answers: 1 });
  expect(answer.subarray(0, 2)).toEqual(asked.subarray(0, 2));
  expect([...answer.subarray(-4)]).toEqual([127, 64, 0, 2]);
  expect(codeOf(answerTo(question('abc.sessions.test', 28), endings)!)).toEqual({ code: 0, answers: 0 }); // IPv6
  for (const other of ['example.com', 'sessions.test', 'xsessions.test'])
    expect(codeOf(answerTo(question(other, 1), endings)!)).toEqual({ code: 3, answers: 0 });
});

test('questions are answered however they are cut into pieces', async () => {
  const client = await open();
  const got: Buffer[] = [];
  client.on('data', (piece: Buffer) => got.push(piece));
  const both = Buffer.concat([question('a.sessions.test', 1), question('b.test', 1)].map(framed));
  for (const byte of both) client.write(Buffer.from([byte]));
  const first = framed(answerTo(question('a.sessions.test', 1), endings)!);
  const second = framed(answerTo(question('b.test', 1), endings)!);
  await expect.poll(() => Buffer.concat(got).toString('hex')).toBe(Buffer.concat([first, second]).toString('hex'));
});

test.each([
  ['is cut off', question('a.sessions.test', 1).subarray(0, 20)],
  ['points to itself', Buffer.from([0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0xc0, 12, 0, 1, 0, 1])],
  ['is an answer', Buffer.from([0, 1, 0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1])],
  ['asks nothing', Buffer.alloc(12)],
  ['is too long', Buffer.alloc(600)],
])('a question that %s ends the connection', async (_, body) => {
  const client = await open();
  client.resume().write(framed(body));
  await once(client, 'close');
  expect(client.destroyed).toBe(true);
});

test('many connections with many questions get few answers in one turn of the event loop', async () => {
  let answered = 0;
  const counted = {
    address: '127.64.0.2',
    get suffix() {
      return (answered++, '.sessions.test');
    },
  };
  const port = await listening([counted]);
  const shortest = framed(Buffer.from([0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1]));
  const questions = Buffer.concat(Array<Buffer>(3000).fill(shortest));
  for (let n = 0; n < 16; n++) connect(port).resume().write(questions);
  let [before, most] = [0, 0];
  while (answered < 16 * 3000) {
    await turn();
    most = Math.max(most, answered - before);
    before = answered;
  }
  expect(most).toBeLessThan(1000);
});

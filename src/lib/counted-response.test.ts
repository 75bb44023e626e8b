import { createServer, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { listenOnLoopback } from '../../test/support/listen.ts';
import { CountedResponse } from './counted-response.ts';

const request = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';

/** A server that answers when it is asked to, and a function that sends requests to it on a new connection. */
async function server() {
  const unanswered: ServerResponse[] = [];
  let made = 0;
  class Response extends CountedResponse {
    constructor(...given: ConstructorParameters<typeof CountedResponse>) {
      made++;
      super(...given);
    }
  }
  const http = createServer({ ServerResponse: Response }, (_, response) => unanswered.push(response));
  const { port, close } = await listenOnLoopback(http);
  onTestFinished(async () => void (await close()));
  const send = (times: number): Socket => {
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    socket.resume().write(request.repeat(times));
    return socket;
  };
  return { unanswered, send, made: () => made };
}

test('the rest of a chunk is not parsed when a connection has too many requests', async () => {
  const { send, made } = await server();
  await once(send(1000), 'close');
  expect(made()).toBe(9); // the parser of this version of Node stops when it is asked to
});

test('all connections together have a bound, and answered or closed requests no longer count', async () => {
  const { send, unanswered } = await server();
  for (const answer of [true, false, true]) {
    const sockets = Array.from({ length: 100 }, () => send(8));
    const open = () => sockets.filter((socket) => !socket.destroyed);
    await expect.poll(() => open().length).toBe(71); // seven pipelined requests on each, 500 in all
    const closed = Promise.all(open().map((socket) => once(socket, 'close')));
    if (answer) for (const response of unanswered) response.writeHead(200, { Connection: 'close' }).end();
    else for (const socket of open()) socket.destroy();
    await closed;
    unanswered.length = 0;
  }
});

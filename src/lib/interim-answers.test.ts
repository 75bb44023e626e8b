import http from 'node:http';
import net from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { listenOnLoopback } from '../../test/support/listen.ts';
import { boundInterimAnswers } from './interim-answers.ts';

const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
});

/** What becomes of a request that gets so many interim answers, and how many of them Node emits. */
async function outcomeOf(interim: number) {
  const answers = 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(interim);
  const { port, close } = await listenOnLoopback(
    net.createServer((socket) => {
      socket.on('error', () => {}).once('data', () => socket.end(`${answers}HTTP/1.1 204 No Content\r\n\r\n`));
    }),
  );
  cleanUp.push(close);
  let emitted = 0;
  const outcome = await new Promise<string>((resolve) => {
    const request = boundInterimAnswers(http.request({ host: '127.0.0.1', port, agent: false }));
    request.on('information', () => emitted++);
    request.once('response', (response) => resolve(`${response.resume().statusCode}`));
    request.once('error', ({ message }) => resolve(message));
    request.end();
  });
  return { outcome, emitted };
}

test('a few interim answers are passed over', async () => {
  expect(await outcomeOf(20)).toEqual({ outcome: '204', emitted: 20 });
});

test('a request with more fails, and the rest of them is not parsed', async () => {
  expect(await outcomeOf(10_000)).toEqual({ outcome: 'there are too many interim answers', emitted: 21 });
});

import { connect } from 'node:net';
import Fastify from 'fastify';
import { afterEach, expect, test } from 'vitest';
import { memory } from '../lib/byte-budget.ts';
import { eventStream, type EventStream, type Heartbeat } from './sse.ts';

const open: (() => Promise<unknown>)[] = [];
afterEach(() => Promise.all(open.splice(0).map((close) => close())));

async function serve(use: (stream: EventStream) => unknown, heartbeat?: Heartbeat) {
  const app = Fastify({ forceCloseConnections: true });
  app.get('/', (_request, reply) => void use(eventStream(reply, heartbeat)));
  open.push(() => app.close());
  return app.listen({ host: '127.0.0.1', port: 0 });
}

test('every event is one frame of JSON, with the headers clients look for', async () => {
  const url = await serve(async (stream) => {
    await stream.send({ event: 'log', text: 'two\nlines' });
    await stream.send({ event: 'end' });
    stream.end();
  });
  const response = await fetch(url);
  expect(response.headers.get('content-type')).toBe('text/event-stream');
  expect(response.headers.get('x-sse-content-type')).toBe('application/json');
  expect(await response.text()).toBe('data: {"event":"log","text":"two\\nlines"}\n\ndata: {"event":"end"}\n\n');
});

test('an event with a name has it beside its data, in the same frame', async () => {
  const url = await serve(async (stream) => {
    await stream.send({ event: 'state' }, 'state');
    stream.end();
  });
  expect(await (await fetch(url)).text()).toBe('event: state\ndata: {"event":"state"}\n\n');
});

test('silence is filled with heartbeats, as events or as comments', async () => {
  for (const heartbeat of [
    { everyMs: 5, event: () => ({ event: 'sse_heartbeat' }) },
    { everyMs: 5, comment: 'still here' },
  ] as Heartbeat[]) {
    const url = await serve(() => {}, heartbeat);
    const reader = (await fetch(url)).body!.getReader();
    let text = '';
    while (text.split('\n\n').length < 4) text += new TextDecoder().decode((await reader.read()).value);
    expect(text).toMatch(
      'comment' in heartbeat ? /^(: still here\n\n){3}/ : /^(data: {"event":"sse_heartbeat"}\n\n){3}/,
    );
    await reader.cancel();
  }
});

test('a reader that disconnects is noticed, and `send` reports it', async () => {
  const left = await new Promise<boolean>((resolve) => {
    void serve((stream) => {
      stream.closed.addEventListener('abort', () => void stream.send({}).then(resolve));
    }).then(async (url) => (await fetch(url)).body!.cancel());
  });
  expect(left).toBe(false);
});

test('a reader that left before the first event is noticed too', async () => {
  const app = Fastify({ forceCloseConnections: true });
  open.push(() => app.close());
  const left = new Promise<boolean>((resolve) => {
    app.get('/', async (request, reply) => {
      await new Promise((gone) => request.raw.once('close', gone));
      const stream = eventStream(reply);
      resolve(stream.closed.aborted && !(await stream.send({})));
    });
  });
  const socket = connect(Number(new URL(await app.listen({ host: '127.0.0.1', port: 0 })).port), '127.0.0.1');
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n', () => socket.destroy());
  expect(await left).toBe(true);
});

test('a reader that does not read slows the source instead of filling memory', async () => {
  let sent = 0;
  const url = await serve(async (stream) => {
    while (await stream.send({ filler: 'x'.repeat(64 * 1024) })) sent++;
  });
  const response = await fetch(url);
  let before = -1;
  while (sent !== before) {
    before = sent;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  expect(sent).toBeLessThan(500);
  await response.body!.cancel();
});

test('large events of readers that do not read wait for room', async () => {
  const size = 8 * 2 ** 20;
  const filler = 'x'.repeat(size);
  let asked = 0;
  const url = await serve(async (stream) => {
    asked++;
    await stream.send({ filler });
  });
  const port = Number(new URL(url).port);
  const clients = Array.from({ length: 10 }, () => connect(port, '127.0.0.1').pause());
  for (const client of clients) client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  await expect.poll(() => asked).toBe(clients.length);
  expect(memory.used).toBeLessThan(72 * 2 ** 20 + size);
  expect(memory.waiting).toBeGreaterThan(0);
  for (const client of clients) client.destroy();
  await expect.poll(() => [memory.used, memory.waiting]).toEqual([0, 0]);
});

test('an event that is read after room was reserved for it is counted once', async () => {
  const size = 2 ** 20;
  let counted = 0;
  const url = await serve(async (stream) => {
    await stream.reserve(size);
    counted = memory.used;
    await stream.send({ filler: 'x'.repeat(size - 100) });
    stream.end();
  });
  expect(await (await fetch(url)).text()).toHaveLength(size - 100 + '{"filler":""}'.length + 'data: \n\n'.length);
  expect(counted).toBe(size);
  await expect.poll(() => memory.used).toBe(0);
});

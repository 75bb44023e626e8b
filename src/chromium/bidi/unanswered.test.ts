import { expect, test, vi } from 'vitest';
import type { Sink } from '../cdp/client.ts';
import { attachBidi } from './bidi.ts';
import { InFlight } from './in-flight.ts';

const results: Record<string, object> = {
  'Browser.getVersion': { product: 'Chrome/1', protocolVersion: '1', userAgent: 'x', revision: '1', jsVersion: '1' },
  'Target.getBrowserContexts': { browserContextIds: [], defaultBrowserContextId: 'D' },
  'Target.getTargets': { targetInfos: [] },
};

// oxlint-disable-next-line typescript/no-explicit-any -- the tests below know the type of the answer
type Anything = any;

/** A client on a browser that answers at once, except commands of Storage. */
function client() {
  const sent: Anything[] = [];
  const mux = {
    attach: (sink: Sink) => ({
      receive(data: Buffer) {
        const { id, method } = JSON.parse(data.toString()) as { id: number; method: string };
        if (method.startsWith('Storage.')) return;
        const answer = JSON.stringify({ id, result: results[method] ?? {} });
        queueMicrotask(() => sink.send([Buffer.from(answer)]));
      },
      flush() {},
      closed() {},
    }),
  };
  const receiver = attachBidi(
    mux as never,
    {
      send: (pieces: readonly Buffer[]) => sent.push(JSON.parse(Buffer.concat(pieces).toString())),
      flush() {},
      bufferedAmount: 0,
      pause() {},
      resume() {},
      close() {},
    } as never,
  );
  const say = (message: object) => receiver.receive(Buffer.from(JSON.stringify(message)));
  async function answerTo(id: number): Promise<Anything> {
    return vi.waitUntil(() => sent.find((message) => message.id === id), 10_000); // the first one loads the mapper
  }
  return { say, answerTo };
}

const names = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`a${at}`, 0]));

test.each([
  ['names', { alwaysMatch: names(101) }],
  ['names of one object', { firstMatch: [{}, names(101)] }],
  ['objects', { firstMatch: Array.from({ length: 51 }, () => ({})) }],
])('capabilities of too many %s are refused', async (_, capabilities) => {
  const { say, answerTo } = client();
  say({ id: 1, method: 'session.new', params: { capabilities } });
  expect(await answerTo(1)).toMatchObject({
    error: 'invalid argument',
    message: expect.stringContaining('at most 50 objects'),
  });
});

test('a channel has at most so many characters', async () => {
  const { say, answerTo } = client();
  say({ id: 1, method: 'session.status', params: {}, 'goog:channel': 'x'.repeat(257) });
  expect(await answerTo(1)).toMatchObject({ error: 'invalid argument', message: expect.stringContaining('256') });
  say({ id: 2, method: 'session.status', params: {}, 'goog:channel': 'x'.repeat(256) });
  expect(await answerTo(2)).toMatchObject({ type: 'success' });
});

test('the unanswered commands of a client have at most so many bytes', async () => {
  const { say, answerTo } = client();
  say({ id: 1, method: 'session.new', params: { capabilities: {} } });
  expect(await answerTo(1)).toMatchObject({ type: 'success' });
  const command = { method: 'storage.getCookies', params: { filter: { name: 'x'.repeat(1_000_000) } } };
  for (let id = 10; id < 30; id++) say({ id, ...command });
  expect(await answerTo(29)).toMatchObject({ error: 'unknown error', message: expect.stringContaining('more than') });
  say({ id: 40, method: 'session.status', params: {} });
  expect(await answerTo(40)).toMatchObject({ type: 'success' });
});

test('the bytes of a command count until its answer, also if its id is used twice', () => {
  const commands = new InFlight();
  commands.add(1, 100);
  commands.add(1, 5);
  commands.add(2, 7);
  commands.answered(1);
  expect(commands).toMatchObject({ count: 2, bytes: 107 });
  commands.answered(3);
  commands.answered(2);
  commands.answered(1);
  expect(commands).toMatchObject({ count: 0, bytes: 0 });
});

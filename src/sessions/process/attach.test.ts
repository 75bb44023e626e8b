import { expect, test } from 'vitest';
import type { Log } from '../../lib/log.ts';
import type { WebSocketSink } from '../../lib/ws-sink.ts';
import type { Hold } from '../holds.ts';
import { attachProcess } from './attach.ts';

const log = { debug() {} } as unknown as Log;

/** A client of a process whose output never comes. */
function attached() {
  const sent: string[] = [];
  const closed: number[] = [];
  const state = { bufferedAmount: 0 };
  const sink = {
    send: (pieces: Buffer[]) => void sent.push(Buffer.concat(pieces).toString()),
    flush() {},
    close: (code: number) => void closed.push(code),
    get bufferedAmount() {
      return state.bufferedAmount;
    },
  } as unknown as WebSocketSink;
  const guest = { open: () => new Promise(() => {}) };
  const client = attachProcess({ engine: { guest } } as unknown as Hold, 'none', sink, log);
  return { client, sent, closed, state };
}

test.each([
  ['text that is no JSON', 'not JSON'],
  ['messages of an unknown type', '{"type":"other"}'],
  ['long texts', 'x'.repeat(2000)],
])('a client that sends %s is answered five times, and closed', async (_, text) => {
  const { client, sent, closed } = attached();
  await new Promise((resolve) => setImmediate(resolve)); // the process is not known: that error is sent first
  const [before, closedBefore] = [sent.length, closed.length];
  for (let times = 0; times < 5; times++) client.receive(Buffer.from(text));
  expect(sent.slice(before)).toHaveLength(5);
  expect(closed.slice(closedBefore)).toEqual([1008]);
});

test('a client that does not read is sent no errors', () => {
  const { client, sent, state } = attached();
  state.bufferedAmount = 2 * 1024 * 1024;
  client.receive(Buffer.from('not JSON'));
  expect(sent).toEqual([]);
});

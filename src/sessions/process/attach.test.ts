import { expect, test } from 'vitest';
import { memory } from '../../lib/byte-budget.ts';
import type { Log } from '../../lib/log.ts';
import type { WebSocketSink } from '../../lib/ws-sink.ts';
import type { Hold } from '../holds.ts';
import { attachProcess } from './attach.ts';
import { spawn } from './service.ts';

const log = { debug() {} } as unknown as Log;

/** A client of a process without output. */
function attached() {
  const sent: string[] = [];
  const closed: number[] = [];
  const state = { bufferedAmount: 0, paused: false };
  const sink = {
    send: (pieces: Buffer[]) => void sent.push(Buffer.concat(pieces).toString()),
    flush() {},
    close: (code: number) => void closed.push(code),
    pause: () => void (state.paused = true),
    resume: () => void (state.paused = false),
    get bufferedAmount() {
      return state.bufferedAmount;
    },
  } as unknown as WebSocketSink;
  const guest = { open: () => new Promise(() => {}) };
  const held = { engine: { guest, memory: memory.group() } } as unknown as Hold;
  return { client: attachProcess(held, 'none', sink, log), sink, sent, closed, state };
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

test('the output of a process is closed for a client that leaves before it is opened', async () => {
  const process_id = '00000000-0000-4000-8000-000000000000';
  const said = [{ json: { process_id, pid: 7, started_at: '2026-01-01T00:00:00Z' } }];
  const never = new Promise(() => {});
  const spawned = { end() {}, reset() {}, next: () => said.shift() ?? never };
  let open = () => {};
  let closed = false;
  const output = {
    end() {},
    reset: () => void (closed = true),
    next: () => new Promise<object>((resolve) => void (open = () => resolve({ json: { tty: true } }))),
  };
  const guest = { started: new Set(), open: async (name: string) => (name === 'spawn' ? spawned : output) };
  const held = { engine: { guest, memory: memory.group() }, stayAwake: () => () => {} } as unknown as Hold;
  await spawn(held, { command: 'sh' });
  const client = attachProcess(held, process_id, attached().sink, log);
  await new Promise((resolve) => setImmediate(resolve));
  client.closed();
  open();
  await expect.poll(() => closed).toBe(true);
});

/** A client of a process whose guest answers calls like this. */
async function attachedTo(call: (name: string, args: object) => Promise<object>) {
  const process_id = '00000000-0000-4000-8000-000000000000';
  const said = [{ json: { process_id, pid: 7, started_at: '2026-01-01T00:00:00Z' } }];
  const never = new Promise(() => {});
  const spawned = { end() {}, reset() {}, next: () => said.shift() ?? never };
  const guest = {
    started: new Set(),
    open: async (name: string) => (name === 'spawn' ? spawned : never),
    call,
  };
  const group = memory.group();
  const held = { engine: { guest, memory: group }, stayAwake: () => () => {} } as unknown as Hold;
  await spawn(held, { command: 'cat' });
  const { sink, state } = attached();
  return { group, state, client: attachProcess(held, process_id, sink, log) };
}

test('input that comes byte by byte is written together, in order with changes of the size', async () => {
  const asked: { name: string; args: { data_b64?: string; rows?: number }; answer: (said: object) => void }[] = [];
  const { group, client } = await attachedTo(
    (name, args) => new Promise((answer) => void asked.push({ name, args, answer })),
  );
  const typeEach = (text: string) => {
    for (const byte of Buffer.from(text)) client.receive(Buffer.from([byte]), true);
  };
  typeEach('first');
  await expect.poll(() => asked.length).toBe(1);
  const long = 'x'.repeat(100_000);
  typeEach(long);
  client.receive(Buffer.from('{"type":"resize","rows":9,"cols":9}'));
  typeEach('last');
  for (let done = 0; done < 5; done++) {
    await expect.poll(() => asked.length).toBe(done + 1);
    asked[done]!.answer({});
  }
  await expect.poll(() => group.used).toBe(0);
  const written = asked.map(({ args: { data_b64, rows } }) => rows ?? Buffer.from(data_b64!, 'base64').toString());
  expect(written).toEqual(['first', 'x'.repeat(65_536), 'x'.repeat(100_000 - 65_536), 9, 'last']);
});

test('a client is read no further while 1 MiB of its input waits, which is counted until it is written', async () => {
  const writes: (() => void)[] = [];
  const { group, client, state } = await attachedTo(
    () => new Promise((answer) => void writes.push(() => answer({ written_bytes: 0 }))),
  );
  const input = Buffer.alloc(600 * 1024);
  client.receive(input, true);
  expect(state.paused).toBe(false);
  client.receive(input, true);
  expect(state.paused).toBe(true);
  client.closed();
  expect(group.used).toBeGreaterThanOrEqual(2 * input.length);
  for (let written = 0; written < 2; written++) {
    await expect.poll(() => writes.length).toBe(1);
    writes.pop()!();
  }
  await expect.poll(() => group.used).toBe(0);
  expect(state.paused).toBe(false);
});

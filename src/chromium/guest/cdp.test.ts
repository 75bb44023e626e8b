import { expect, test, vi } from 'vitest';
import { memory } from '../../lib/byte-budget.ts';
import type { Mux } from '../cdp/mux.ts';
import { serveCdp } from './cdp.ts';
import type { Stream } from './channel.ts';

test('a connection to a browser that has exited ends, and causes no error', async () => {
  const reset = vi.fn<() => void>();
  const stream = { next: async () => undefined, bytes: async () => {}, reset } as unknown as Stream;
  const attach: Mux['attach'] = (sink) => {
    sink.close(1011, 'The browser went away.');
    return { receive() {}, flush() {}, closed() {} };
  };
  serveCdp(stream, { attach });
  expect(reset).toHaveBeenCalledOnce();
});

/** A stream of the guest that sends these bytes, and takes no answers. */
function sending(bytes: Iterable<Buffer>): Stream {
  const items = bytes[Symbol.iterator]();
  const next = async () => {
    const { done, value } = items.next();
    return done === true ? undefined : { bytes: value };
  };
  return { next, bytes: () => new Promise(() => {}), reset() {} } as unknown as Stream;
}

test('messages that arrive together are received in several turns', async () => {
  const taken: number[] = [];
  let received = 0;
  const pace = {
    isOver: () => received - (taken.at(-1) ?? 0) >= 1000,
    next: async () => void taken.push(received),
  };
  const receive = () => void received++;
  serveCdp(sending([Buffer.alloc(65_536)]), { attach: () => ({ receive, flush() {}, closed() {} }) }, undefined, pace);
  await expect.poll(() => received).toBe(16_384);
  expect(taken).toHaveLength(16);
});

test('an unread answer counts for more than its bytes', async () => {
  const group = memory.group();
  let sink!: Parameters<Mux['attach']>[0];
  const attach: Mux['attach'] = (made) => {
    sink = made;
    return { receive() {}, flush() {}, closed() {} };
  };
  serveCdp({ ...sending([]), next: () => new Promise(() => {}) }, { attach }, group);
  for (let sent = 0; sent < 1000; sent++) sink.send([Buffer.from('{}')]);
  expect(group.used).toBeGreaterThan(500_000);
  sink.close(1000, '');
  expect(group.used).toBe(0);
});

test('a message in assembly is counted, and waits when there is no room for it', async () => {
  const group = memory.group();
  const size = 2 * 1024 * 1024;
  const head = Buffer.alloc(4);
  head.writeUInt32LE(size);
  let read = 0;
  function* chunks() {
    yield head;
    for (; read < size; read += 65_536) yield Buffer.alloc(65_536, 'x');
  }
  // A whole message of one project, and a message of another that exceeds the total: there is room for no other.
  const others = [memory.share(memory.group(), 'reader', () => {}), memory.share(memory.group(), 'sender', () => {})];
  others[0]!.set(72 * 1024 * 1024);
  others[1]!.grow(80 * 1024 * 1024, () => {});
  const received: Buffer[] = [];
  const receive = (message: Buffer) => void received.push(message);
  try {
    serveCdp(sending(chunks()), { attach: () => ({ receive, flush() {}, closed() {} }) }, group);
    await expect.poll(() => memory.waiting).toBe(1);
    expect(read).toBeLessThan(size / 4);
    others[1]!.close();
    await expect.poll(() => received.map(String)).toEqual(['x'.repeat(size)]);
    await expect.poll(() => group.used).toBe(0);
  } finally {
    for (const other of others) other.close();
  }
});

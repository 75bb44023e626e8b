import { afterEach, describe, expect, test, vi } from 'vitest';
import { ChannelClosed, guestOf, type Guest } from '../../src/chromium/guest/guest.ts';
import type { Browser } from '../../src/chromium/browser/launch.ts';
import { memory } from '../../src/lib/byte-budget.ts';
import { list } from '../../src/sessions/fs/service.ts';
import { execute, executeResult } from '../../src/sessions/playwright/service.ts';

/**
 * The guest runs as the session's user, whose processes may take it over: SIGUSR1 alone opens Node's inspector. This guest is
 * hostile from the start. It writes the channel's frames by hand, on the same descriptor, and tries to make the service keep or do more
 * than was requested. The service must end it each time.
 */
describe('a guest that was taken over', () => {
  const guests: Guest[] = [];
  afterEach(async () => {
    for (const guest of guests.splice(0)) await guest.close();
  });

  /** `script` has `frame(kind, stream, payload)`, `flood(buffer, times)`, `asked(listener)` and the kinds. */
  function hostile(script: string) {
    const code = `
      const net = require('node:net');
      const [OPEN, JSON_ITEM, BYTES, END, FAIL, CREDIT, RESET] = [0, 1, 2, 3, 4, 5, 6];
      const socket = new net.Socket({ fd: 3, readable: true, writable: true });
      socket.on('error', () => process.exit()).on('close', () => process.exit());
      setTimeout(() => process.exit(), 60_000);
      function frame(kind, stream, payload = '') {
        const bytes = Buffer.from(typeof payload === 'string' || Buffer.isBuffer(payload) ? payload : JSON.stringify(payload));
        const head = Buffer.alloc(9);
        head.writeUInt32LE(5 + bytes.length, 0);
        head.writeUInt8(kind, 4);
        head.writeUInt32LE(stream, 5);
        return Buffer.concat([head, bytes]);
      }
      /** One buffer over and over, as fast as it is taken. */
      function flood(buffer, times) {
        const many = Buffer.concat(Array.from({ length: 1000 }, () => buffer));
        const more = () => { while (times > 0) { times -= 1000; if (!socket.write(many)) return void socket.once('drain', more); } };
        more();
      }
      /** Answers pings, and passes other requests to the listener. */
      function asked(listener) {
        let buffer = Buffer.alloc(0);
        socket.on('data', (chunk) => {
          buffer = Buffer.concat([buffer, chunk]);
          while (buffer.length >= 9 && buffer.length >= 4 + buffer.readUInt32LE(0)) {
            const size = 4 + buffer.readUInt32LE(0);
            const [kind, stream, payload] = [buffer.readUInt8(4), buffer.readUInt32LE(5), buffer.subarray(9, size)];
            buffer = buffer.subarray(size);
            if (kind !== OPEN) continue;
            const { name } = JSON.parse(payload);
            if (name === 'ping') socket.write(frame(JSON_ITEM, stream, {}));
            else listener(name, stream);
          }
        });
      }
      ${script}`;
    const ended: string[] = [];
    const connections: number[] = [];
    const log = { warn: (facts: { reason?: string }) => void ended.push(facts.reason ?? '') };
    const inside = () => ({ file: process.execPath, args: ['-e', code], options: {} });
    const guest = guestOf({
      browser: { confined: true, tools: '/', engine: 'headless', inside, adopt: () => {} } as unknown as Browser,
      toolbox: { dir: '/', ready: Promise.resolve(), node: () => process.execPath },
      allowUnsandboxed: false,
      onCdp(stream) {
        connections.push(1);
        stream.reset();
      },
      onDevtools: (stream) => stream.reset(),
      log: log as never,
    });
    guests.push(guest);
    const held = { engine: { guest, memory: memory.project(crypto.randomUUID()) }, stayAwake: () => () => {} } as never;
    return { guest, ended, connections, held };
  }

  /** Why the service ended it. */
  const end = (ended: string[]) => vi.waitUntil(() => ended[0], { timeout: 60_000 });

  test('does not have refusals pile up that it never reads', async () => {
    const { guest, ended } = hostile(`
      let id = 0;
      socket.pause();
      const ask = () => { for (let i = 0; i < 1000 && id < 400_000; i++) socket.write(frame(OPEN, (id += 2), { name: 'x' }));
        if (id < 400_000) socket.once('drain', ask); };
      ask();`);
    await guest.open('list', { path: '/' });
    expect(await end(ended)).toMatch(/asked for/);
  });

  test('does not open connections to the browser without end', async () => {
    const { guest, ended, connections } = hostile(`
      for (let id = 2; id < 4000; id += 2) socket.write(Buffer.concat([frame(OPEN, id, { name: 'cdp' }), frame(RESET, id)]));`);
    await guest.open('list', { path: '/' });
    expect(await end(ended)).toMatch(/too many/);
    expect(connections.length).toBeLessThan(200);
  });

  test.each([
    ['a byte at a time', `frame(BYTES, stream, 'x')`],
    ['an empty object at a time', `frame(JSON_ITEM, stream, {})`],
  ])('does not send more than is taken, %s', async (_, item) => {
    // 200,000 items are 3.4 MB by the channel's count, and were some fifty in the service's memory.
    const { guest, ended } = hostile(`asked((name, stream) => flood(${item}, 200_000));`);
    await guest.open('list', { path: '/' });
    expect(await end(ended)).toMatch(/more was sent/);
  });

  test('does not speak of streams that there are not', async () => {
    const { guest, ended } = hostile(`asked(() => flood(frame(END, 999), 2_000_000));`);
    await guest.open('list', { path: '/' });
    expect(await end(ended)).toMatch(/there are not/);
  });

  test.each([
    ['an answer', 'JSON_ITEM', /more names and values/],
    ['a refusal', 'FAIL', /impossible size/],
    ['a question', 'OPEN', /impossible size/],
  ])('does not have the service parse JSON for seconds in %s', async (_, kind, reason) => {
    const { guest, ended } = hostile(`asked((name, stream) =>
      socket.write(frame(${kind}, ${kind} === OPEN ? 2 : stream, '{"name":"cdp","a":[' + '{},'.repeat(2_700_000) + '0]}')));`);
    const stream = await guest.open('list', { path: '/' });
    await expect(stream.next()).rejects.toThrow(ChannelClosed);
    expect(await end(ended)).toMatch(reason);
  });

  test('does not take back more than it was sent', async () => {
    const { guest, ended } = hostile(
      `asked((name, stream) => flood(frame(CREDIT, stream, Buffer.from([0, 0, 1, 0])), 1000));`,
    );
    await guest.open('list', { path: '/' });
    expect(await end(ended)).toMatch(/credit/);
  });

  test('does not list files with names of gigabytes', async () => {
    const { held } = hostile(`asked((name, stream) => {
      const path = 'x'.repeat(16_000);
      const one = { name: path, path, size_bytes: 1, is_dir: false, mod_time: '2026', mode: '' };
      flood(frame(JSON_ITEM, stream, Array.from({ length: 10 }, () => one)), 5000);
    });`);
    await expect(list(held, '/')).rejects.toMatchObject({ code: expect.stringMatching(/guest_lost|bad_path/) });
  });

  test.each([
    ['does not print more than code may print', 'null', 10 * 2 ** 20, 'expected shape'],
    ['does not send a result that is not UTF-8', '"\xff"', 0, 'JSON that is none'],
  ])('%s', async (_, result, printed, reason) => {
    const { held, ended } = hostile(`asked((name, stream) => {
      const say = (kind, what) => socket.write(frame(kind, stream, what));
      say(JSON_ITEM, { success: true });
      for (const bytes of [Buffer.from(${JSON.stringify(result)}, 'latin1'), Buffer.alloc(${printed}, 1), Buffer.alloc(0)]) {
        say(JSON_ITEM, { bytes: bytes.length });
        for (let at = 0; at < bytes.length; at += 65_536) say(BYTES, bytes.subarray(at, at + 65_536));
      }
    });`);
    const answer = execute(held, { code: '1' }, new AbortController().signal, executeResult);
    await expect(answer).rejects.toMatchObject({ code: 'guest_lost' });
    expect(await end(ended)).toContain(reason);
  });

  test('does not block a caller that has cancelled', async () => {
    const { held } = hostile(`asked(() => {});`);
    const leave = new AbortController();
    const answer = execute(held, { code: '1' }, leave.signal, () => {});
    setTimeout(() => leave.abort(new Error('gone')), 500);
    await expect(answer).rejects.toThrow('gone');
  });
});

import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { measuredService, mostStopMs } from '../support/longest-stop.ts';
import { requireSandbox } from '../support/sandbox.ts';

await requireSandbox();

let service: Awaited<ReturnType<typeof measuredService>>;
let id: string;
beforeAll(async () => {
  service = await measuredService();
  const viewport = { width: 4096, height: 4096 };
  const { body } = await service.call('POST', '/browsers', { headless: false, timeout_seconds: 600, viewport });
  id = body.session_id;
});
afterAll(async () => await service?.close());

/** A frame of a websocket with one byte, and a mask of zeros. */
const oneByte = (byte: number) => Buffer.from([0x82, 0x81, 0, 0, 0, 0, byte]);

test('a viewer that sends its encodings byte by byte does not stop the service', async () => {
  const link = await service.call('POST', `/browsers/${id}/live_view_links`, {});
  const { host, searchParams } = new URL(link.body.url as string);
  const greeting = Buffer.from('RFB 003.008\n\x01\x01', 'latin1');
  const stop = await service.longestStop(async () => {
    const viewer = new WebSocket(`ws://${host}/browser/live/socket?${searchParams.toString()}`);
    const closed = once(viewer, 'close');
    let raw: { write(data: Buffer): boolean } | undefined;
    viewer.on('upgrade', ({ socket }) => (raw = socket));
    await once(viewer, 'open');
    viewer.send(greeting);
    viewer.send(Buffer.from([2, 0, 0xff, 0xff])); // 65,535 encodings follow
    raw!.write(Buffer.concat(Array<Buffer>(80_000).fill(oneByte(0))));
    viewer.ping();
    await Promise.race([once(viewer, 'pong'), closed]);
    viewer.terminate();
  });
  expect(stop).toBeLessThan(mostStopMs);
});

/** Each is parsed on its way to the display, or dropped. */
const smallMessages = { SetEncodings: [2, 0, 0, 0], xvp: [250, 0, 0, 0], PointerEvent: [5, 0, 0, 0, 0, 0] };

test.each(Object.entries(smallMessages))(
  'a viewer that only watches does not stop the service with 2 MiB of %s in one message',
  async (_, message) => {
    const link = await service.call('POST', `/browsers/${id}/live_view_links`, {});
    const { host, searchParams } = new URL(link.body.url as string);
    const stop = await service.longestStop(async () => {
      const viewer = new WebSocket(`ws://${host}/browser/live/socket?${searchParams.toString()}`);
      const closed = once(viewer, 'close');
      await once(viewer, 'open');
      viewer.send(Buffer.from('RFB 003.008\n\x01\x01', 'latin1'));
      viewer.send(Buffer.alloc(2 * 1024 * 1024 - message.length, Buffer.from(message)));
      viewer.ping();
      await Promise.race([once(viewer, 'pong'), closed]);
      viewer.terminate();
    });
    expect(stop).toBeLessThan(mostStopMs);
  },
);

test('a screenshot of the largest display does not stop the service', { timeout: 300_000 }, async () => {
  const stop = await service.longestStop(async () => {
    const { status } = await service.call('POST', `/browsers/${id}/computer/screenshot`, {});
    expect(status, service.output()).toBe(200);
  });
  expect(stop).toBeLessThan(mostStopMs);
});

test(
  'a recording of a display that is too large is refused, and one of the largest does not stop the service',
  { timeout: 300_000 },
  async () => {
    const refused = await service.call('POST', `/browsers/${id}/replays`, {});
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('8294400 pixels')]);
    await service.call('PATCH', `/browsers/${id}`, { viewport: { width: 3840, height: 2160 } });
    const stop = await service.longestStop(async () => {
      const { status, text, body } = await service.call('POST', `/browsers/${id}/replays`, { framerate: 2 });
      expect(status, text).toBe(201);
      await sleep(3000);
      expect((await service.call('GET', `/browsers/${id}/replays`)).body.at(-1).status).toBe('recording');
      await service.call('POST', `/browsers/${id}/replays/${body.replay_id}/stop`);
    });
    expect(stop).toBeLessThan(mostStopMs);
  },
);

test('a larger display is refused', async () => {
  for (const { width, height } of [
    { width: 4097, height: 4096 },
    { width: 8192, height: 8192 },
  ]) {
    const viewport = { width, height, force: true };
    const answers = [
      await service.call('POST', '/browsers', { viewport: { width, height } }),
      await service.call('POST', '/browser_pools', { size: 1, viewport: { width, height } }),
      await service.call('PATCH', `/browsers/${id}`, { viewport }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([400, 400, 400]);
    expect(answers[0]!.text).toContain('at most 16777216 pixels');
  }
});

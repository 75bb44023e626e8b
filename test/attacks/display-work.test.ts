import { once } from 'node:events';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { measuredService, mostStopMs } from '../support/longest-stop.ts';
import { requireSandbox } from '../support/sandbox.ts';

await requireSandbox();

let service: Awaited<ReturnType<typeof measuredService>>;
let id: string;
beforeAll(async () => {
  service = await measuredService();
  const { body } = await service.call('POST', '/browsers', { headless: false, timeout_seconds: 600 });
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

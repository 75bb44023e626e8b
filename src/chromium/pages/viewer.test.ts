import { expect, test } from 'vitest';
import { silent } from '../../lib/log.ts';
import type { WebSocketSink } from '../../lib/ws-sink.ts';
import type { LocalClient } from '../cdp/local-client.ts';
import type { Picture, Watcher } from './cast.ts';
import { Viewer, type Shown } from './viewer.ts';
import { viewerPictures } from './viewer-pictures.ts';

const MIB = 1024 * 1024;

/** A viewer whose connection takes nothing away. */
function unreadViewer() {
  const ends: number[] = [];
  let unread = 0;
  const take = (pieces: readonly Buffer[]) => {
    for (const { length } of pieces) unread += length;
  };
  const sink: WebSocketSink = {
    send: take,
    sendBinary: take,
    flush() {},
    get bufferedAmount() {
      return unread;
    },
    close: (code) => void ends.push(code),
    pause() {},
    resume() {},
  };
  const client = { closed: new Promise<string>(() => {}), close() {} } as unknown as LocalClient;
  return { viewer: new Viewer(client, sink, { readOnly: false, log: silent }), ends, sink };
}

test('a viewer that does not read the answers to its input is dropped, without a picture', () => {
  const { viewer, ends, sink } = unreadViewer();
  const text = 'x'.repeat(1_000_000);
  for (let times = 0; times < 30; times++) viewer.tell({ type: 'clipboard', text });
  expect(ends).toEqual([1008]);
  expect(sink.bufferedAmount).toBeLessThan(18 * MIB);
});

test('a viewer that acknowledges pictures without reading them is dropped', () => {
  const { viewer, ends, sink } = unreadViewer();
  let watcher: Watcher | undefined;
  const join = (_tab: string, _level: unknown, joined: Watcher) => {
    watcher = joined;
    return { newest: undefined, drawn() {}, resized() {}, leave() {} };
  };
  const pictures = viewerPictures(viewer, { join });
  viewer.shown = { id: 'A', viewport: '' } as Shown;
  pictures.start(viewer.shown);
  for (let number = 1; number <= 100; number++) {
    const picture: Picture = { number, jpeg: Buffer.alloc(MIB), width: 1000, height: 700 };
    watcher!.offer(picture);
    pictures.drawn();
  }
  expect(ends).toEqual([1008]);
  expect(sink.bufferedAmount).toBeLessThan(18 * MIB);
});

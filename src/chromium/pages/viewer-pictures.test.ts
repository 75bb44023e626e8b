import { expect, onTestFinished, test, vi } from 'vitest';
import type { Level } from './cast-levels.ts';
import type { Picture, Watcher } from './cast.ts';
import type { Shown, Viewer } from './viewer.ts';
import { viewerPictures } from './viewer-pictures.ts';

/** A viewer, and casts that record their watchers. */
function viewerOf() {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const sent: string[] = [];
  const messages: unknown[] = [];
  const casts: { tab: string; level: Level; watcher: Watcher; drawn: number[]; left: boolean; newest?: Picture }[] = [];
  let leave!: () => void;
  const closed = new Promise<void>((resolve) => (leave = resolve));
  const viewer = {
    client: { closed },
    sink: { bufferedAmount: 0, sendBinary: ([jpeg]: Buffer[]) => void sent.push(jpeg!.toString()) },
    shown: undefined as Shown | undefined,
    reads: () => true,
    tell: (message: unknown) => void messages.push(message),
    later: (ms: number, work: () => void) => setTimeout(work, ms),
  };
  const join = (tab: string, level: Level, watcher: Watcher) => {
    const cast: (typeof casts)[number] = { tab, level, watcher, drawn: [], left: false };
    casts.push(cast);
    return {
      get newest() {
        return cast.newest;
      },
      drawn: (number: number) => void cast.drawn.push(number),
      resized() {},
      leave: () => void (cast.left = true),
    };
  };
  const pictures = viewerPictures(viewer as unknown as Viewer, { join }); // the class has private fields
  let numbers = 0;
  return {
    viewer,
    pictures,
    casts,
    sent,
    messages,
    leave,
    show(id: string) {
      viewer.shown = { id, viewport: '' } as Shown;
      pictures.start(viewer.shown);
    },
    offer(text: string) {
      numbers += 1;
      const cast = casts.at(-1)!;
      cast.newest = { number: numbers, jpeg: Buffer.from(text), width: 1000, height: 700 };
      cast.watcher.offer(cast.newest);
    },
  };
}

const VIEWPORT = { type: 'viewport', width: 1000, height: 700 };

test('a viewer gets the pictures of the tab that it sees, and the size of the page before the first', () => {
  const { show, offer, casts, sent, messages } = viewerOf();
  show('A');
  expect(casts).toMatchObject([{ tab: 'A', level: 'high' }]);
  offer('one');
  offer('two');
  expect(sent).toEqual(['one', 'two']);
  expect(messages).toEqual([VIEWPORT]);
});

test('a slow viewer leaves pictures out, and gets the newest when it has drawn', () => {
  const { show, offer, casts, sent, pictures } = viewerOf();
  show('A');
  for (const text of ['one', 'two', 'three', 'four', 'five']) offer(text);
  expect(sent).toEqual(['one', 'two']);
  pictures.drawn();
  expect(sent).toEqual(['one', 'two', 'five']);
  pictures.drawn();
  pictures.drawn();
  pictures.drawn(); // more often than it was sent pictures
  expect(sent).toEqual(['one', 'two', 'five']);
  expect(casts[0]!.drawn).toEqual([1, 2, 5]);
});

test('another tab is another cast, and pictures that are still on their way count', () => {
  const { show, offer, casts, sent, pictures } = viewerOf();
  show('A');
  offer('a1');
  offer('a2');
  show('B');
  expect(casts).toMatchObject([
    { tab: 'A', left: true },
    { tab: 'B', left: false },
  ]);
  offer('b1');
  expect(sent).toEqual(['a1', 'a2']);
  pictures.drawn();
  expect(sent).toEqual(['a1', 'a2', 'b1']);
  pictures.stop();
  expect(casts[1]!.left).toBe(true);
});

test('a quality is a cast of its own, and only of the shown tab', () => {
  const { show, casts, pictures } = viewerOf();
  pictures.setQuality('low');
  expect(casts).toEqual([]);
  show('A');
  pictures.setQuality('medium');
  pictures.setQuality('medium');
  pictures.setQuality('auto');
  expect(casts.map(({ level, left }) => [level, left])).toEqual([
    ['low', true],
    ['medium', true],
    ['high', false],
  ]);
});

test('the automatic quality decreases when pictures are late, and increases on a still page; then no timer is left', async () => {
  const { show, offer, casts, pictures } = viewerOf();
  show('A');
  for (let i = 0; i < 3; i++) {
    offer(`late ${i}`);
    await vi.advanceTimersByTimeAsync(900);
    pictures.drawn();
    await vi.advanceTimersByTimeAsync(100);
  }
  expect(casts.map(({ level }) => level)).toEqual(['high', 'medium']);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(casts.map(({ level, left }) => [level, left])).toEqual([
    ['high', true],
    ['medium', true],
    ['high', false],
  ]);
  expect(vi.getTimerCount()).toBe(0);
});

test('a viewer that draws nothing is left as it is, and a quality that a person chose is kept', async () => {
  const { show, offer, casts, pictures } = viewerOf();
  show('A');
  offer('one');
  offer('two');
  await vi.advanceTimersByTimeAsync(60_000);
  expect(casts).toHaveLength(1);
  pictures.setQuality('high');
  pictures.drawn();
  pictures.drawn();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(casts).toHaveLength(1);
  expect(vi.getTimerCount()).toBe(0);
});

test('a viewer that disconnects leaves its cast, also in the middle of a picture', async () => {
  const { show, offer, casts, leave } = viewerOf();
  show('A');
  offer('one');
  leave();
  await Promise.resolve();
  await Promise.resolve();
  expect(casts[0]!.left).toBe(true);
});

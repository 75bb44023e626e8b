import { expect, test } from 'vitest';
import { sessionThumbnail } from './thumbnail.ts';

function house(picture: () => Promise<Buffer | undefined>) {
  const state = { mayAsk: true, asked: 0, now: 0 };
  const engine = { thumbnail: () => (state.asked++, picture()) };
  const wall = sessionThumbnail({ engine: async () => engine, mayAsk: () => state.mayAsk, now: () => state.now });
  return { wall, state };
}

test('one picture serves all viewers, for three seconds', async () => {
  const { wall, state } = house(async () => Buffer.from(`picture ${state.asked}`));
  const both = await Promise.all([wall.look(), wall.look()]);
  expect(both.map((seen) => String(seen?.jpeg))).toEqual(['picture 1', 'picture 1']);
  state.now = 2999;
  expect(String((await wall.look())?.jpeg)).toBe('picture 1');
  state.now = 3000;
  expect(await wall.look()).toEqual({ jpeg: Buffer.from('picture 2'), takenAt: new Date(3000) });
});

test('a session that sleeps, or shows nothing, is shown as it was last seen', async () => {
  let picture: () => Promise<Buffer | undefined> = async () => Buffer.from('before');
  const { wall, state } = house(() => picture());
  state.mayAsk = false;
  expect(await wall.look()).toBeUndefined();
  expect(state.asked).toBe(0);
  state.mayAsk = true;
  await wall.look();
  state.mayAsk = false;
  state.now = 10_000;
  expect(String((await wall.look())?.jpeg)).toBe('before');
  expect(state.asked).toBe(1);
  state.mayAsk = true;
  picture = () => Promise.reject(new Error('gone'));
  expect(String((await wall.look())?.jpeg)).toBe('before');
});

test('a session that fell asleep during a picture does not block viewers', async () => {
  const { wall, state } = house(() => new Promise(() => {}));
  void wall.look();
  state.mayAsk = false;
  expect(await wall.look()).toBeUndefined();
});

test('a caller with a shorter limit waits no longer than that', async () => {
  const { wall } = house(() => new Promise(() => {}));
  expect(await wall.look(10)).toBeUndefined();
});

test('the picture of one holder is not shown to the next', async () => {
  let show!: (jpeg: Buffer) => void;
  const { wall } = house(() => new Promise((resolve) => (show = resolve)));
  const looking = wall.look();
  await Promise.resolve();
  wall.forget();
  show(Buffer.from('secret'));
  expect(await looking).toBeUndefined();
});

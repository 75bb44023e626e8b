import { expect, test } from 'vitest';
import { fakeEngine } from '../../test/support/fake-engine.ts';
import { sessionFrontPage } from './front-page.ts';

const page = (url: string) => ({ url, title: `Title of ${url}` });
const later = <T>() => {
  let resolve!: (value: T) => void;
  const promise = new Promise<T>((done) => (resolve = done));
  return { promise, resolve };
};

function house(frontPage: () => Promise<{ url: string; title: string } | undefined>) {
  const state = { mayAsk: true, asked: 0 };
  const engine = { ...fakeEngine().engine, frontPage: () => (state.asked++, frontPage()) };
  const front = sessionFrontPage({ engine: async () => engine, mayAsk: () => state.mayAsk });
  return { front, state };
}

test('shows the page that the browser has in front, and asks once for all concurrent callers', async () => {
  const { front, state } = house(async () => page('https://a.example/'));
  expect(front.seen).toBeUndefined();
  await Promise.all([front.look(5000), front.look(5000)]);
  expect(front.seen).toEqual({ ...page('https://a.example/'), seenAt: expect.any(Date) });
  expect(state.asked).toBe(1);
});

test('a browser that sleeps or does not answer keeps the last known page', async () => {
  let answer: () => Promise<{ url: string; title: string }> = async () => page('https://a.example/');
  const { front, state } = house(() => answer());
  await front.look(5000);
  state.mayAsk = false;
  await front.look(5000);
  expect(state.asked).toBe(1);
  state.mayAsk = true;
  answer = () => Promise.reject(new Error('gone'));
  await front.look(5000);
  answer = () => new Promise(() => {});
  await front.look(1);
  expect(front.seen?.url).toBe('https://a.example/');
  expect(state.asked).toBe(3);
});

test('a page read for one holder is not shown to the next', async () => {
  const slow = later<{ url: string; title: string }>();
  const { front } = house(() => slow.promise);
  const looking = front.look(5000);
  front.forget();
  slow.resolve(page('https://secret.example/'));
  await looking;
  expect(front.seen).toBeUndefined();
});

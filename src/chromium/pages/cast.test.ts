import { expect, onTestFinished, test, vi } from 'vitest';
import { silent } from '../../lib/log.ts';
import type { CdpListener, LocalClient } from '../cdp/local-client.ts';
import { castsOf, type Picture, type Seat, type Size } from './cast.ts';

interface Sent {
  readonly method: string;
  readonly params: Record<string, unknown>;
}

/** A client of a browser that answers each command, and sends the events of the test. */
function fakeClient() {
  const listeners = new Map<string, CdpListener>();
  const sent: Sent[] = [];
  let settle!: (reason: string) => void;
  const closed = new Promise<string>((resolve) => (settle = resolve));
  /** `refusals` is how many starts of the screencast fail from now on. */
  const state = { closed: false, attachable: true, refusals: 0 };
  let frames = 0;
  const send = async (method: string, params: Record<string, unknown> = {}) => {
    sent.push({ method, params });
    if (method === 'Page.startScreencast' && state.refusals > 0) {
      state.refusals -= 1;
      throw new Error('Not attached to an active page');
    }
    return {};
  };
  const client = {
    closed,
    send,
    async ask(_is: unknown, method: string, params: Record<string, unknown>) {
      await send(method, params);
      if (!state.attachable) throw new Error('No target with given id found');
      return { sessionId: 'S' };
    },
    on: (event: string, is: (params: unknown) => boolean, listener: CdpListener) =>
      listeners.set(event, (params, sessionId) => (is(params) ? listener(params, sessionId) : undefined)),
    close() {
      state.closed = true;
      settle('closed');
    },
  };
  return {
    client: client as unknown as LocalClient, // has the parts that a cast uses
    sent,
    state,
    methods: () => sent.map(({ method }) => method),
    acknowledged: () =>
      sent.filter(({ method }) => method === 'Page.screencastFrameAck').map(({ params }) => params['sessionId']),
    starts: () => sent.filter(({ method }) => method === 'Page.startScreencast').map(({ params }) => params),
    /** A picture with these contents. */
    picture(text: string, sessionId = 'S') {
      frames += 1;
      const metadata = { deviceWidth: 1000, deviceHeight: 700 };
      const data = Buffer.from(text).toString('base64');
      listeners.get('Page.screencastFrame')?.({ data, metadata, sessionId: frames }, sessionId);
    },
    tell: (event: string, params: Record<string, unknown>) => listeners.get(event)?.(params, undefined),
    die: () => settle('The browser went away.'),
  };
}

function browser(refreshRate?: () => number | undefined) {
  const clients: ReturnType<typeof fakeClient>[] = [];
  const mux = {
    attachLocal() {
      const made = fakeClient();
      clients.push(made);
      return made.client;
    },
  };
  return { clients, casts: castsOf(mux, { log: silent, ...(refreshRate && { refreshRate }) }) };
}

function watcher(size?: Size) {
  const offered: string[] = [];
  const failures: string[] = [];
  return {
    size,
    offered,
    failures,
    offer: ({ jpeg }: Picture) => void offered.push(jpeg.toString()),
    failed: (reason: string) => void failures.push(reason),
  };
}

/** Lets all that was answered be heard. */
const settled = async () => {
  for (let turns = 0; turns < 20; turns++) await Promise.resolve();
};

function fakeTime() {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
}

async function joined(count: number, sizes: readonly Size[] = []) {
  const { clients, casts } = browser();
  const watchers = Array.from({ length: count }, (_, i) => watcher(sizes[i]));
  const seats = watchers.map((one) => casts.join('T', 'high', one));
  await settled();
  return { casts, client: clients[0]!, clients, watchers, seats: seats as [Seat, ...Seat[]] };
}

test('all viewers of a tab at one level share one client and one encoding', async () => {
  const { casts, client, clients, watchers } = await joined(5);
  expect(clients).toHaveLength(1);
  expect(client.methods()).toEqual(['Target.attachToTarget', 'Page.startScreencast']);
  client.picture('one');
  for (const { offered } of watchers) expect(offered).toEqual(['one']);
  casts.join('T', 'low', watcher());
  casts.join('other', 'high', watcher());
  await settled();
  expect(clients).toHaveLength(3);
  expect(casts.count).toBe(3);
  expect(clients[1]!.starts()).toMatchObject([{ quality: 30 }]);
});

test('a viewer that joins finds the newest picture, also when the page is still', async () => {
  const { casts, client, seats } = await joined(1);
  expect(seats[0].newest).toBeUndefined();
  client.picture('one');
  client.picture('two');
  const seat = casts.join('T', 'high', watcher());
  expect(seat.newest?.jpeg.toString()).toBe('two');
  expect(seat.newest).toMatchObject({ width: 1000, height: 700 });
});

test('the fastest viewer sets the pace: a picture is acknowledged when the first has drawn it, once', async () => {
  fakeTime();
  const { client, seats } = await joined(2);
  const [fast, slow] = seats as [Seat, Seat];
  client.picture('one');
  client.picture('two');
  expect(client.acknowledged()).toEqual([]);
  fast.drawn(1);
  fast.drawn(2);
  await vi.advanceTimersByTimeAsync(40);
  expect(client.acknowledged()).toEqual([1, 2]);
  slow.drawn(1);
  slow.drawn(2);
  await vi.advanceTimersByTimeAsync(100);
  expect(client.acknowledged()).toEqual([1, 2]);
});

test('pictures that no viewer will draw any more are acknowledged with a newer one', async () => {
  fakeTime();
  const { client, seats } = await joined(2);
  const [left, stays] = seats as [Seat, Seat];
  client.picture('one');
  client.picture('two');
  left.leave();
  stays.drawn(2);
  await vi.advanceTimersByTimeAsync(40);
  expect(client.acknowledged()).toEqual([1, 2]);
});

test('no faster than 25 a second, than the level, and than the refresh rate, which may change', async () => {
  fakeTime();
  for (const [level, rate, apart] of [
    ['high', undefined, 40],
    ['low', undefined, 125],
    ['low', 2, 500],
    ['high', 50, 20],
  ] as const) {
    const { clients, casts } = browser(() => rate);
    const seat = casts.join('T', level, watcher());
    await settled();
    const client = clients[0]!;
    client.picture('one');
    client.picture('two');
    seat.drawn(1);
    seat.drawn(2);
    expect(client.acknowledged()).toEqual([1]);
    await vi.advanceTimersByTimeAsync(apart - 1);
    expect(client.acknowledged()).toEqual([1]);
    await vi.advanceTimersByTimeAsync(2);
    expect(client.acknowledged()).toEqual([1, 2]);
    seat.leave();
  }
});

test('a picture is requested when the last one may have been dropped, and only then', async () => {
  fakeTime();
  const { client, seats } = await joined(1);
  client.picture('one');
  seats[0].drawn(1);
  await vi.advanceTimersByTimeAsync(1000);
  expect(client.starts()).toHaveLength(1);
  client.picture('two');
  client.picture('three'); // as many as may be in flight
  seats[0].drawn(3);
  await vi.advanceTimersByTimeAsync(1000);
  expect(client.starts()).toHaveLength(2);
  client.picture('the last');
  seats[0].drawn(4);
  await vi.advanceTimersByTimeAsync(1000);
  expect(client.starts()).toHaveLength(2);
});

test('pictures are as large as the largest viewer needs them, at every moment', async () => {
  const { client, seats, casts } = await joined(2, [
    { width: 800, height: 900 },
    { width: 1200, height: 600 },
  ]);
  expect(client.starts()).toMatchObject([{ maxWidth: 1200, maxHeight: 900 }]);
  casts.join('T', 'high', watcher()); // has not said its size
  await settled();
  expect(client.starts()).toHaveLength(1);
  seats[1]!.leave();
  await settled();
  expect(client.starts().at(-1)).toMatchObject({ maxWidth: 800, maxHeight: 900 });
  const resizing = watcher({ width: 100, height: 100 });
  const seat = casts.join('T', 'high', resizing);
  await settled();
  expect(client.starts()).toHaveLength(2);
  resizing.size = { width: 16_000, height: 16_000 };
  seat.resized();
  await settled();
  expect(client.starts().at(-1)).toMatchObject({ maxWidth: 3840, maxHeight: 2160 });
  const { clients, casts: others } = browser();
  others.join('T', 'least', watcher({ width: 1000, height: 700 }));
  await settled();
  expect(clients[0]!.starts()).toMatchObject([{ maxWidth: 500, maxHeight: 350 }]);
});

test('the last viewer that leaves ends the cast, and the next one begins another', async () => {
  fakeTime();
  const { casts, client, clients, seats } = await joined(2);
  const [one, other] = seats as [Seat, Seat];
  client.picture('one');
  client.picture('two');
  one.drawn(1);
  one.drawn(2); // its acknowledgement waits
  one.leave();
  one.leave();
  expect(client.state.closed).toBe(false);
  other.leave();
  expect(client.state.closed).toBe(true);
  expect(casts.count).toBe(0);
  expect(vi.getTimerCount()).toBe(0);
  one.drawn(3);
  other.resized();
  expect(other.newest).toBeUndefined();
  casts.join('T', 'high', watcher());
  expect(clients).toHaveLength(2);
});

test('a viewer that leaves while the cast attaches leaves nothing', async () => {
  const { clients, casts } = browser();
  casts.join('T', 'high', watcher()).leave();
  await settled();
  expect(clients[0]!.state.closed).toBe(true);
  expect(clients[0]!.methods()).toEqual(['Target.attachToTarget']);
  expect(casts.count).toBe(0);
});

test.each<[string, (client: ReturnType<typeof fakeClient>) => unknown]>([
  ['its tab is closed', (client) => client.tell('Target.detachedFromTarget', { sessionId: 'S' })],
  ['the browser has exited', (client) => client.die()],
])('a cast ends when %s', async (_, end) => {
  fakeTime();
  const { casts, client, watchers, seats } = await joined(2);
  client.picture('one');
  client.picture('two');
  seats[0].drawn(1);
  seats[0].drawn(2);
  end(client);
  await settled();
  expect(client.state.closed).toBe(true);
  expect(casts.count).toBe(0);
  expect(vi.getTimerCount()).toBe(0);
  client.picture('late');
  expect(watchers[0]!.offered).toEqual(['one', 'two']);
  for (const seat of seats) seat.leave();
});

test('a cast ends when its tab was closed before it attached', async () => {
  const { clients, casts } = browser();
  const seat = casts.join('T', 'high', watcher());
  clients[0]!.state.attachable = false;
  await settled();
  expect(casts.count).toBe(0);
  expect(clients[0]!.state.closed).toBe(true);
  seat.leave();
});

test('starts once the navigation is over that replaces the page, also after a change of size', async () => {
  fakeTime();
  const { clients, casts } = browser();
  const one = watcher({ width: 800, height: 600 });
  casts.join('T', 'high', one);
  clients[0]!.state.refusals = 2;
  await vi.advanceTimersByTimeAsync(1000);
  expect(clients[0]!.starts()).toHaveLength(3);
  clients[0]!.picture('one');
  clients[0]!.state.refusals = 1;
  casts.join('T', 'high', watcher({ width: 1000, height: 600 }));
  await vi.advanceTimersByTimeAsync(1000);
  expect(clients[0]!.starts().map(({ maxWidth }) => maxWidth)).toEqual([800, 800, 800, 1000, 1000]);
  clients[0]!.picture('two');
  expect(one.offered).toEqual(['one', 'two']);
});

test('a cast that cannot start ends, and a tab that closes at that time leaves no timer', async () => {
  fakeTime();
  const { clients, casts } = browser();
  casts.join('never', 'high', watcher());
  clients[0]!.state.refusals = Infinity;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(casts.count).toBe(0);
  casts.join('closed', 'high', watcher());
  clients[1]!.state.refusals = Infinity;
  await settled();
  clients[1]!.tell('Target.detachedFromTarget', { sessionId: 'S' });
  expect(vi.getTimerCount()).toBe(0);
  expect(casts.count).toBe(0);
});

test('a browser that sends more pictures than it may ends the cast for all watchers', async () => {
  const { casts, client, watchers } = await joined(2);
  for (let i = 0; i < 30; i++) client.picture(`${i}`);
  for (const { offered, failures } of watchers) {
    expect(offered).toHaveLength(20);
    expect(failures).toEqual(['The browser sends more pictures than were requested.']);
  }
  expect(casts.count).toBe(0);
});

test('pictures of another session are ignored', async () => {
  const { client, watchers } = await joined(1);
  client.picture('foreign', 'other');
  expect(watchers[0]!.offered).toEqual([]);
});

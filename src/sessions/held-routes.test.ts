import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import Fastify, { type FastifyReply, type FastifyRequest } from 'fastify';
import { afterEach, describe, expect, test } from 'vitest';
import { eachOf, heldSessions, type HeldSessions } from './held-routes.ts';
import type { Hold } from './holds.ts';

const open: (() => unknown)[] = [];
afterEach(() => Promise.all(open.splice(0).map((close) => close())));

/** Something that is reached and waits there until it is let through. */
function gate() {
  let reach!: () => void;
  let letThrough!: () => void;
  const reached = new Promise<void>((resolve) => (reach = resolve));
  const through = new Promise<void>((resolve) => (letThrough = resolve));
  return { reached, letThrough, pass: () => (reach(), through) };
}

type Route = (held: HeldSessions, stages: Stages, request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;
type Stages = ReturnType<typeof stages>;

function stages() {
  return { wake: gate(), open: gate(), until: new AbortController(), opened: 0, closed: 0 };
}

/** A source that has one thing to say, and then nothing more until it is closed. */
function endless(at: Stages) {
  let said = false;
  let end!: () => void;
  const ended = new Promise<undefined>((resolve) => (end = () => resolve(undefined)));
  at.opened++;
  return {
    next: async () => (said ? ended : ((said = true), { first: 'thing' })),
    close() {
      at.closed++;
      end();
    },
  };
}

const routes: Record<string, Route> = {
  events: (held, at, request, reply) =>
    held.sendEvents(request, reply, async () => {
      await at.open.pass();
      return eachOf(endless(at));
    }),
  bytes: (held, at, request, reply) =>
    held.sendBytes(request, reply, async () => {
      await at.open.pass();
      const { next, close } = endless(at);
      const content = Readable.from(
        (async function* () {
          for (let item; (item = await next());) yield Buffer.from(JSON.stringify(item));
        })(),
        { objectMode: false },
      );
      return { content, close };
    }),
};

/** A server with one route, a session that notes its holds, and a client that has asked for it. */
async function ask(route: Route) {
  const at = stages();
  const holds = { now: 0, most: 0 };
  const sessions = {
    idOf: async () => 's',
    async hold(): Promise<Hold> {
      holds.most = Math.max(holds.most, ++holds.now);
      await at.wake.pass();
      let held = true;
      const release = () => {
        if (held) holds.now--;
        held = false;
      };
      return { release, until: at.until.signal } as unknown as Hold;
    },
  };
  const app = Fastify({ forceCloseConnections: true });
  app.decorateRequest('project', null).decorateRequest('caller', null);
  app.addHook('onRequest', async (request) => {
    Object.assign(request, { project: { id: 'p' }, caller: { keyId: 'k' } });
  });
  const held = heldSessions({ sessions });
  app.get('/:id', (request, reply) => route(held, at, request, reply) as Promise<never>);
  open.push(() => app.close());
  const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
  const arrived = once(app.server, 'connection') as Promise<[Socket]>;
  const client = connect(Number(port), '127.0.0.1');
  client.on('error', () => {});
  client.write('GET /s HTTP/1.1\r\nHost: x\r\n\r\n');
  const [theirs] = await arrived;
  return {
    at,
    holds,
    client,
    /** Resolves when the server has noticed. */
    async hangUp() {
      const noticed = new Promise((resolve) => theirs.once('close', resolve));
      client.destroy();
      await noticed;
    },
  };
}

describe.each(Object.entries(routes))('a session that streams %s is given back', (_name, route) => {
  test('when its client hangs up while it wakes, and nothing is opened', async () => {
    const { at, holds, hangUp } = await ask(route);
    await at.wake.reached;
    await hangUp();
    at.wake.letThrough();
    at.open.letThrough();
    await expect.poll(() => holds).toEqual({ now: 0, most: 1 });
    expect(at.opened).toBe(0);
  });

  test('when its client hangs up before the first byte, and the source is closed', async () => {
    const { at, holds, hangUp } = await ask(route);
    at.wake.letThrough();
    await at.open.reached;
    await hangUp();
    at.open.letThrough();
    await expect.poll(() => holds).toEqual({ now: 0, most: 1 });
    await expect.poll(() => at.closed).toBeGreaterThan(0);
  });

  test('when its client hangs up in the middle', async () => {
    const { at, holds, client, hangUp } = await ask(route);
    at.wake.letThrough();
    at.open.letThrough();
    let read = '';
    for await (const chunk of client) if ((read += String(chunk)).includes('first')) break;
    expect(holds.now).toBe(1);
    await hangUp();
    await expect.poll(() => holds.now).toBe(0);
    expect(at.closed).toBeGreaterThan(0);
  });

  test('when its source cannot be opened', async () => {
    const { at, holds, client } = await ask((held, at, request, reply) => {
      const failing = { ...held };
      const fail = async () => Promise.reject(new Error('It is not there.'));
      return route === routes['events']
        ? failing.sendEvents(request, reply, fail)
        : failing.sendBytes(request, reply, fail);
    });
    at.wake.letThrough();
    const [answer] = (await once(client, 'data')) as [Buffer];
    expect(String(answer)).toMatch(/^HTTP\/1.1 500/);
    expect(holds).toEqual({ now: 0, most: 1 });
  });
});

test('events end when the browser goes back to its pool', async () => {
  const { at, holds, client } = await ask(routes['events']!);
  at.wake.letThrough();
  at.open.letThrough();
  let read = '';
  for await (const chunk of client) {
    if ((read += String(chunk)).includes('first')) at.until.abort();
    if (read.endsWith('0\r\n\r\n')) break;
  }
  await expect.poll(() => holds.now).toBe(0);
});

test('bytes break off when the browser goes back to its pool, and the source is closed', async () => {
  const { at, holds, client } = await ask(routes['bytes']!);
  at.wake.letThrough();
  at.open.letThrough();
  let read = '';
  for await (const chunk of client) if ((read += String(chunk)).includes('first')) at.until.abort(new Error('over'));
  expect(read).not.toMatch(/0\r\n\r\n$/); // a reader can see that the answer is incomplete
  await expect.poll(() => holds.now).toBe(0);
  expect(at.closed).toBeGreaterThan(0);
});

test('a session that goes back to its pool before anything is sent is refused', async () => {
  const { at, holds, client } = await ask(routes['bytes']!);
  at.wake.letThrough();
  await at.open.reached;
  at.until.abort(Object.assign(new Error('It went back.'), { statusCode: 404 }));
  at.open.letThrough();
  const [answer] = (await once(client, 'data')) as [Buffer];
  expect(String(answer)).toMatch(/^HTTP\/1.1 404/);
  expect(holds.now).toBe(0);
  await expect.poll(() => at.closed).toBeGreaterThan(0);
});

test('a request that is not a stream is given up when the browser goes back to its pool', async () => {
  const { at, holds, client } = await ask((held, at, request, reply) =>
    held.using(request, reply, async ({ gone }) => {
      at.until.abort(Object.assign(new Error('It went back.'), { statusCode: 404 }));
      gone.throwIfAborted();
    }),
  );
  at.wake.letThrough();
  const [answer] = (await once(client, 'data')) as [Buffer];
  expect(String(answer)).toMatch(/^HTTP\/1.1 404/);
  expect(holds.now).toBe(0);
});

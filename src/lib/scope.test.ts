import { spawn } from 'node:child_process';
import net, { type AddressInfo, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { currentOwner, onBehalfOf, withoutOwner, ownEvents, sameOwner, type Owner } from './scope.ts';

const events = ['unhandledRejection', 'uncaughtException'] as const;
const runners = events.map((event) => process.listeners(event as 'unhandledRejection'));
let faults: [message: string, owner: string | undefined][] = [];

const take = (error: unknown) => void faults.push([(error as Error).message, currentOwner()?.id]);

beforeEach(() => {
  faults = [];
  for (const event of events) process.removeAllListeners(event).on(event, take);
});

afterEach(() => {
  for (const [at, event] of events.entries()) {
    process.removeAllListeners(event);
    for (const listener of runners[at]!) process.on(event, listener);
  }
});

const owner = (id: string): Owner => ({ kind: 'session', id, end() {} });

async function fault(): Promise<(typeof faults)[number]> {
  while (faults.length === 0) await sleep(5);
  return faults[0]!;
}

const fails = async () => {
  await sleep(1);
  throw new Error('a fault');
};

test('an unhandled rejection is reported with the owner of its async function', async () => {
  onBehalfOf(owner('a'), () => void fails());
  expect(await fault()).toEqual(['a fault', 'a']);
});

test('the innermost owner counts', async () => {
  onBehalfOf(owner('a'), () => onBehalfOf(owner('b'), () => void fails()));
  expect(await fault()).toEqual(['a fault', 'b']);
});

test('a promise of another that fails in the work of an owner is of that owner', async () => {
  let fail = (_error: Error) => {};
  const others = new Promise<void>((_resolve, reject) => (fail = reject));
  const waits = async () => {
    await others;
  };
  onBehalfOf(owner('a'), () => void waits());
  onBehalfOf(owner('b'), () => setTimeout(() => fail(new Error('of another')), 1));
  expect(await fault()).toEqual(['of another', 'a']);
});

test('an exception in a timer, and in a listener to a child process, belongs to the owner that started it', async () => {
  onBehalfOf(owner('a'), () =>
    setTimeout(() => {
      throw new Error('in a timer');
    }, 1),
  );
  expect(await fault()).toEqual(['in a timer', 'a']);
  faults = [];
  onBehalfOf(owner('b'), () =>
    spawn('echo', ['a line']).stdout.on('data', () => {
      throw new Error('in a listener');
    }),
  );
  expect(await fault()).toEqual(['in a listener', 'b']);
});

test('shared work has no owner', async () => {
  onBehalfOf(owner('a'), () => withoutOwner(() => void fails()));
  expect(await fault()).toEqual(['a fault', undefined]);
});

test('work that another starts later belongs to the owner that planned it', async () => {
  const planned = onBehalfOf(owner('a'), sameOwner);
  onBehalfOf(owner('b'), () => planned(() => void fails()));
  expect(await fault()).toEqual(['a fault', 'a']);
});

test.each([
  [
    'an exception',
    () => {
      throw new Error('a fault');
    },
  ],
  ['a rejection', fails],
])('%s in a listener to an accepted socket belongs to the owner that accepted the socket', async (_what, listener) => {
  const accepted: Socket[] = [];
  const server = net.createServer((socket) => {
    accepted.push(socket);
    onBehalfOf(owner('a'), () => ownEvents(socket).on('data', listener));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const client = net.connect((server.address() as AddressInfo).port, '127.0.0.1').end('some bytes');
  try {
    expect(await fault()).toEqual(['a fault', 'a']);
  } finally {
    for (const socket of [...accepted, client]) socket.destroy();
    server.close();
  }
});

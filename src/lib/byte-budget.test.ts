import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { ByteBudget, type Share } from './byte-budget.ts';
import { currentOwner, onBehalfOf } from './scope.ts';

const MIB = 1024 * 1024;
const options = { total: 10 * MIB, groupTotal: 5 * MIB, stillMs: 50 };
const notCut = () => {
  throw new Error('was ended');
};

test('one message at a time may exceed the total', () => {
  const budget = new ByteBudget(options);
  const first = budget.share(budget.group(), 'sender', notCut);
  const second = budget.share(budget.group(), 'sender', notCut);
  let resumed = 0;
  expect(first.grow(50 * MIB, () => {})).toBe(true);
  expect(second.grow(20 * MIB, () => resumed++)).toBe(false);
  first.set(0);
  expect(resumed).toBe(1);
  expect(second.grow(20 * MIB, () => {})).toBe(true);
  second.close();
  expect(budget.used).toBe(0);
});

test('a small share does not wait for a large one', () => {
  const budget = new ByteBudget(options);
  const large = budget.share(budget.group(), 'sender', notCut);
  const small = budget.share(budget.group(), 'sender', notCut);
  large.grow(20 * MIB, () => {});
  expect(small.grow(100_000, () => {})).toBe(true);
  large.close();
  small.close();
});

test('a group that holds all it may does not make another group wait', () => {
  const budget = new ByteBudget(options);
  const [mine, yours] = [budget.group(), budget.group()];
  const shares = [mine, mine, yours].map((group) => budget.share(group, 'sender', notCut));
  expect(shares[0]!.grow(7 * MIB, () => {})).toBe(true);
  expect(shares[1]!.grow(4 * MIB, () => {})).toBe(true); // this one may overdraw
  const third = budget.share(mine, 'sender', notCut);
  expect(third.grow(MIB, () => {})).toBe(false);
  expect(shares[2]!.grow(MIB, () => {})).toBe(true);
  for (const share of [...shares, third]) share.close();
  expect(budget.used).toBe(0);
});

test('a reader without progress is ended when others wait, and a slow reader is not', async () => {
  const budget = new ByteBudget({ ...options, stillMs: 400 });
  let ended = 0;
  const still = budget.share(budget.group(), 'reader', () => ended++);
  const reads = budget.share(budget.group(), 'reader', notCut);
  still.set(8 * MIB);
  reads.set(8 * MIB);
  const waits = budget.share(budget.group(), 'sender', notCut);
  const granted = new Promise<void>((resolve) => void (waits.grow(MIB, resolve) && resolve()));
  const until = Date.now() + 20_000;
  for (let left = 8 * MIB; ended === 0 && Date.now() < until; await sleep(20)) reads.set((left -= 1000));
  expect(ended).toBe(1);
  await granted;
  reads.close();
  waits.close();
  expect(budget.used).toBe(0);
});

/** Readers that read a little now and then, and get more than they read. */
function slowReaders(budget: ByteBudget, projects: string[], end: () => void) {
  const readers = projects.map((id) => budget.share(budget.project(id), 'reader', end));
  for (const reader of readers) {
    reader.set(9 * MIB);
    reader.set(8 * MIB);
  }
  return readers;
}

test('readers of one project that read less than they get are ended until the rest has room, and the largest is not', async () => {
  const budget = new ByteBudget({ ...options, stillMs: 60_000 });
  let ended = 0;
  const download = budget.share(budget.project('slow'), 'reader', notCut);
  download.set(200 * MIB);
  const other = budget.share(budget.project('other'), 'reader', notCut);
  other.set(8 * MIB);
  const slow = slowReaders(
    budget,
    Array.from({ length: 50 }, () => 'slow'),
    () => ended++,
  );
  await expect.poll(() => ended, { timeout: 20_000 }).toBe(45);
  expect(budget.used).toBe((200 + 8 + 5 * 8) * MIB); // ten, and 32 for small ones
  for (const share of [...slow, download, other]) share.close();
  expect(budget.used).toBe(0);
});

test('slow readers of many projects, one of each, are ended when they have had too much for long', async () => {
  const ids = Array.from({ length: 50 }, (_, i) => `slow ${i}`);
  const ended = [0, 0];
  const [patient, strict] = [60_000, 300].map((overdraftMs, i) => {
    const budget = new ByteBudget({ ...options, stillMs: 60_000, overdraftMs });
    return { budget, slow: slowReaders(budget, ids, () => (ended[i]! += 1)) };
  });
  await expect.poll(() => ended, { timeout: 20_000 }).toEqual([0, 44]);
  for (const share of [...patient!.slow, ...strict!.slow]) share.close();
  expect([patient!.budget.used, strict!.budget.used]).toEqual([0, 0]);
});

/** Shares of projects that hold all they may: bodies that have arrived in part, and bodies of requests that are not answered yet. */
function hoard(budget: ByteBudget, projects: string[]) {
  return projects.flatMap((id) =>
    Array.from({ length: 12 }, () => {
      const share = budget.share(budget.project(id), 'sender', notCut);
      const send = (left: number): void => {
        if (left === 0) share.hold(true);
        else if (share.grow(MIB / 8, () => send(left - 1))) send(left - 1);
      };
      send(16);
      return share;
    }),
  );
}

test.each([1, 2, 3])('%i projects that hold all they may leave room for the next one', (count) => {
  const budget = new ByteBudget(options);
  const hoarded = hoard(
    budget,
    Array.from({ length: count }, (_, i) => `hoarder ${i}`),
  );
  expect(budget.waiting).toBeGreaterThan(0);
  const next = budget.share(budget.project('next'), 'sender', notCut);
  expect(next.grow(MIB / 2, () => {})).toBe(true);
  next.close();
  const large = budget.share(budget.project('next'), 'sender', notCut);
  expect(large.grow(20 * MIB, () => {})).toBe(true);
  for (const share of [...hoarded, large]) share.close();
  expect([budget.used, budget.waiting]).toEqual([0, 0]);
});

test('small shares of one project leave room for those of another', () => {
  const budget = new ByteBudget(options);
  const small = (id: string) => budget.share(budget.project(id), 'sender', notCut);
  const hoarded = Array.from({ length: 300 }, () => small('hoarder'));
  for (const share of hoarded) share.grow(200_000, () => {});
  expect(budget.waiting).toBeGreaterThan(0);
  const next = small('next');
  expect(next.grow(200_000, () => {})).toBe(true);
  for (const share of [...hoarded, next]) share.close();
  expect(budget.used).toBe(0);
});

test('all bodies of one project arrive in the end, however many are sent at once', () => {
  const budget = new ByteBudget(options);
  const left = new Set(hoard(budget, ['one']));
  for (let rounds = 0; left.size > 0 && rounds < 20; rounds++) {
    for (const share of left) {
      if (!share.held) continue;
      share.close();
      left.delete(share);
    }
  }
  expect([left.size, budget.used, budget.waiting]).toEqual([0, 0, 0]);
});

test('the bytes of a session count for its project from the moment it has one', () => {
  const budget = new ByteBudget(options);
  const sessions = [budget.group(), budget.group()];
  const shares = sessions.map((group) => budget.share(group, 'sender', notCut));
  for (const share of shares) expect(share.grow(3.5 * MIB, () => {})).toBe(true);
  for (const group of sessions) budget.join(group, budget.project('one'));
  expect(budget.project('one').used).toBe(7 * MIB);
  const body = budget.share(budget.project('one'), 'reader', notCut);
  body.set(6 * MIB); // no further message of the project may exceed the limit
  let resumed = 0;
  expect(shares[0]!.grow(MIB, () => resumed++)).toBe(false);
  body.close();
  expect(resumed).toBe(1);
  for (const share of shares) share.close();
  expect(budget.project('one').used).toBe(0);
});

test('a message that exceeds the limit for too long is ended when another project waits', async () => {
  const budget = new ByteBudget({ ...options, overdraftMs: 300 });
  let ended = 0;
  const slow = budget.share(budget.project('slow'), 'sender', () => ended++);
  slow.grow(20 * MIB, () => {});
  const waits = budget.share(budget.project('waits'), 'sender', notCut);
  const granted = new Promise<void>((resolve) => void (waits.grow(20 * MIB, resolve) && resolve()));
  const trickle = setInterval(() => slow.grow(100_000, () => {}), 20); // it makes progress
  await granted;
  clearInterval(trickle);
  expect(ended).toBe(1);
  waits.close();
  slow.close();
});

test('a project that waits because of its own bytes ends no share of a project that holds less', async () => {
  const budget = new ByteBudget({ ...options, stillMs: 50 });
  const slow = budget.share(budget.project('slow client'), 'sender', notCut);
  slow.grow(100_000, () => {});
  const hoarded = hoard(budget, ['hoarder']);
  expect(budget.waiting).toBeGreaterThan(0);
  await sleep(600);
  expect(slow.bytes).toBe(100_000);
  for (const share of [...hoarded, slow]) share.close();
});

const onBehalf = <T>(id: string, work: () => T): T => onBehalfOf({ kind: 'session', id, end() {} }, work);

test('a share is resumed and ended for its own owner, not for the owner of the share that freed memory', async () => {
  const budget = new ByteBudget(options);
  const owners: [what: string, owner: string | undefined][] = [];
  const note = (what: string) => owners.push([what, currentOwner()?.id]);
  const still = onBehalf('still', () => budget.share(budget.group(), 'reader', () => void note('ended')));
  const first = onBehalf('first', () => budget.share(budget.group(), 'sender', notCut));
  const next = onBehalf('next', () => budget.share(budget.group(), 'sender', notCut));
  onBehalf('still', () => still.set(8 * MIB));
  await new Promise<void>((resolve) => {
    onBehalf('first', () => first.grow(4 * MIB, () => {})); // it exceeds the total
    onBehalf('next', () => next.grow(4 * MIB, () => (note('resumed'), resolve())));
  });
  expect(owners).toEqual([
    ['resumed', 'next'],
    ['ended', 'still'],
  ]);
  first.close();
  next.close();
});

test('an error thrown by a resumed share does not stop other shares, and belongs to its own owner', async () => {
  const budget = new ByteBudget(options);
  const [over, large, fails, waits] = ['over', 'large', 'fails', 'waits'].map((id) =>
    onBehalf(id, () => budget.share(budget.project(id === 'over' ? 'other' : 'one'), 'sender', notCut)),
  ) as [Share, Share, Share, Share];
  const before = process.listeners('uncaughtException');
  const fault = new Promise((resolve) => {
    process.removeAllListeners('uncaughtException');
    process.once('uncaughtException', ({ message }) => resolve([message, currentOwner()?.id]));
  });
  try {
    let resumed = 0;
    over.grow(20 * MIB, () => {});
    large.grow(7 * MIB, () => {});
    fails.grow(MIB, () => {
      throw new Error('a fault');
    });
    waits.grow(MIB, () => resumed++);
    onBehalf('large', () => large.close());
    expect(resumed).toBe(1);
    expect(await fault).toEqual(['a fault', 'fails']);
  } finally {
    process.removeAllListeners('uncaughtException');
    for (const listener of before) process.on('uncaughtException', listener);
  }
  for (const share of [over, fails, waits]) share.close();
});

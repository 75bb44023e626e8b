import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { ByteBudget, type Share } from './byte-budget.ts';
import { currentOwner, onBehalfOf } from './scope.ts';

const MIB = 1024 * 1024;
const options = { total: 10 * MIB, groupTotal: 5 * MIB, stillMs: 50 };
const notCut = () => {
  throw new Error('was ended');
};

test('a message that is alone may be as large as it likes, and the next one when it is gone', () => {
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

test('what is small does not wait for what is large', () => {
  const budget = new ByteBudget(options);
  const large = budget.share(budget.group(), 'sender', notCut);
  const small = budget.share(budget.group(), 'sender', notCut);
  large.grow(20 * MIB, () => {});
  expect(small.grow(100_000, () => {})).toBe(true);
  large.close();
  small.close();
});

test('a group has its part and no more, and the others have theirs', () => {
  const budget = new ByteBudget(options);
  const [mine, yours] = [budget.group(), budget.group()];
  const shares = [mine, mine, yours].map((group) => budget.share(group, 'sender', notCut));
  expect(shares[0]!.grow(4 * MIB, () => {})).toBe(true);
  expect(shares[1]!.grow(4 * MIB, () => {})).toBe(true); // the one that may overdraw
  const third = budget.share(mine, 'sender', notCut);
  expect(third.grow(MIB, () => {})).toBe(false);
  expect(shares[2]!.grow(MIB, () => {})).toBe(true);
  for (const share of [...shares, third]) share.close();
  expect(budget.used).toBe(0);
});

test('a reader that stands still is ended when others wait, and one that reads is not', async () => {
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
    onBehalf('first', () => first.grow(4 * MIB, () => void note('first goes on')));
    onBehalf('next', () => next.grow(4 * MIB, () => (note('next goes on'), resolve())));
  });
  expect(owners.toSorted(([a], [b]) => a.localeCompare(b))).toEqual([
    ['ended', 'still'],
    ['first goes on', 'first'],
    ['next goes on', 'next'],
  ]);
  first.close();
  next.close();
});

test('what a share throws when it goes on keeps no other waiting, and is no fault of the one that made the room', async () => {
  const budget = new ByteBudget(options);
  const [large, fails, waits] = ['large', 'fails', 'waits'].map((id) =>
    onBehalf(id, () => budget.share(budget.group(), 'sender', notCut)),
  ) as [Share, Share, Share];
  const before = process.listeners('uncaughtException');
  const fault = new Promise((resolve) => {
    process.removeAllListeners('uncaughtException');
    process.once('uncaughtException', ({ message }) => resolve([message, currentOwner()?.id]));
  });
  try {
    let resumed = 0;
    large.grow(20 * MIB, () => {});
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
  fails.close();
  waits.close();
});

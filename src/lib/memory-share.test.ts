import { expect, test, vi } from 'vitest';
import { ByteBudget } from './byte-budget.ts';
import { memoryShare } from './memory-share.ts';

const MIB = 1024 * 1024;

test('a growing share waits for room, and continues when another share is closed', async () => {
  const budget = new ByteBudget({ total: 4 * MIB });
  const [one, other] = [
    memoryShare(budget.group(), () => {}, undefined, budget),
    memoryShare(budget.group(), () => {}, undefined, budget),
  ];
  await one.add(6 * MIB); // one at a time may exceed the total
  const resumed = vi.fn<() => void>();
  const waiting = other.add(6 * MIB).then(resumed);
  await new Promise((resolve) => setImmediate(resolve));
  expect(resumed).not.toHaveBeenCalled();
  one.close();
  await waiting;
  other.close();
  expect(budget.used).toBe(0);
});

test('the share of a disconnected client does not wait for room', async () => {
  const budget = new ByteBudget({ total: MIB });
  const one = memoryShare(budget.group(), () => {}, undefined, budget);
  await one.add(2 * MIB);
  const leave = new AbortController();
  const other = memoryShare(budget.group(), () => {}, leave.signal, budget);
  const waiting = other.add(MIB);
  leave.abort(new Error('gone'));
  await expect(waiting).rejects.toThrow('gone');
  await expect(other.add(1)).rejects.toThrow('gone');
  other.close();
  one.close();
  expect(budget.used).toBe(0);
});

test('a source that stops in the middle is ended while others wait', async () => {
  const budget = new ByteBudget({ total: MIB, stillMs: 50 });
  const end = vi.fn<() => void>();
  const one = memoryShare(budget.group(), end, undefined, budget);
  await one.add(2 * MIB);
  const other = memoryShare(budget.group(), () => {}, undefined, budget);
  await other.add(MIB);
  expect(end).toHaveBeenCalledOnce();
  one.close();
  other.close();
});

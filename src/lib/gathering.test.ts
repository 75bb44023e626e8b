import { expect, test, vi } from 'vitest';
import { ByteBudget } from './byte-budget.ts';
import { gathering } from './gathering.ts';

const MIB = 1024 * 1024;

test('bytes that are gathered wait for room, and go on when others are done', async () => {
  const budget = new ByteBudget({ total: 4 * MIB });
  const [one, other] = [gathering(() => {}, undefined, budget), gathering(() => {}, undefined, budget)];
  await one.add(6 * MIB); // one at a time may exceed the total
  const went = vi.fn<() => void>();
  const waiting = other.add(MIB).then(went);
  await new Promise((resolve) => setImmediate(resolve));
  expect(went).not.toHaveBeenCalled();
  one.close();
  await waiting;
  other.close();
  expect(budget.used).toBe(0);
});

test('who has left does not wait for room', async () => {
  const budget = new ByteBudget({ total: MIB });
  const one = gathering(() => {}, undefined, budget);
  await one.add(2 * MIB);
  const leave = new AbortController();
  const other = gathering(() => {}, leave.signal, budget);
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
  const one = gathering(end, undefined, budget);
  await one.add(2 * MIB);
  const other = gathering(() => {}, undefined, budget);
  await other.add(MIB);
  expect(end).toHaveBeenCalledOnce();
  one.close();
  other.close();
});

import { expect, test } from 'vitest';
import { memory } from '../lib/byte-budget.ts';
import { answerMemory } from './answer-memory.ts';

async function* answer(bytes: number) {
  yield Buffer.alloc(bytes);
}

test('the answers that the messages of a request read are bounded together, and counted until it is answered', async () => {
  const group = memory.group();
  const read = answerMemory(group, new AbortController().signal);
  await Promise.all([read.read(answer(3_000_000)), read.read(answer(3_000_000))]);
  expect(group.used).toBe(6_000_000);
  await expect(read.read(answer(3_000_000))).rejects.toThrow('larger than 8 MB');
  read.close();
  expect(group.used).toBe(0);
});

test('a request reads nothing more after its client hangs up', async () => {
  const disconnected = new AbortController();
  const { read, close } = answerMemory(memory.group(), disconnected.signal);
  disconnected.abort(new Error('The client hung up.'));
  await expect(read(answer(1))).rejects.toThrow('The client hung up.');
  close();
});

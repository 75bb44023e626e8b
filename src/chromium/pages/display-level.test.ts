import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { displayLevel } from './display-level.ts';
import type { LevelMessage } from './viewer-protocol.ts';

let said: LevelMessage[] = [];
let unsent = 0;
let level: ReturnType<typeof displayLevel>;

beforeEach(() => {
  vi.useFakeTimers();
  said = [];
  unsent = 0;
  level = displayLevel(
    (message) => said.push(message),
    () => unsent,
  );
});
afterEach(() => {
  level.close();
  vi.useRealTimers();
});

const levels = () => said.flatMap((message) => (message.type === 'level' ? [message.level] : []));
const marks = () => said.filter(({ type }) => type === 'mark').length;

/** Waits for the next mark, and answers it so much later. */
function answerAfter(ms: number): void {
  const before = marks();
  while (marks() === before) vi.advanceTimersByTime(100);
  vi.advanceTimersByTime(ms);
  level.answered();
}

test('a viewer that reads immediately gets the best pictures and no message', () => {
  for (let look = 0; look < 10; look++) answerAfter(20);
  expect(levels()).toEqual([]);
  expect(marks()).toBe(10);
});

test('a viewer that reads late gets coarser pictures step by step, and better ones when it reads in time', () => {
  for (const ms of [700, 700, 450, 450]) answerAfter(ms);
  for (let look = 0; look < 7; look++) answerAfter(20);
  expect(levels()).toEqual(['medium', 'low', 'medium', 'high']);
});

test('what waits in the service counts as late', () => {
  unsent = 2 ** 20;
  for (let look = 0; look < 3; look++) answerAfter(0);
  expect(levels()).toEqual(['medium']);
});

test('a viewer that does not answer gets one mark, and an answer without a mark is ignored', () => {
  vi.advanceTimersByTime(60_000);
  expect(said).toEqual([{ type: 'mark' }]);
  level.answered();
  level.answered();
  vi.advanceTimersByTime(1000);
  expect(levels()).toEqual(['least']);
  level.close();
  vi.advanceTimersByTime(60_000);
  expect(marks()).toBe(2);
});

import { expect, test } from 'vitest';
import { Line } from './line.ts';

const taken = (line: Line) => {
  const events = [];
  for (let event; (event = line.take());) events.push(event);
  return events;
};

test('events beyond the limit are counted, and the count is reported before the next event', () => {
  const line = new Line('/root');
  for (let count = 0; count < 10_500; count++) line.add({ type: 'CREATE', path: `/root/${count}` });
  const [first, second, ...rest] = taken(line);
  expect(first).toEqual({ type: 'OVERFLOW', path: '/root', dropped: 500 });
  expect(second).toEqual({ type: 'CREATE', path: '/root/500' });
  expect(rest).toHaveLength(9999);
});

test('many writes to one file are one event until it is read', () => {
  const line = new Line('/root');
  for (let count = 0; count < 5; count++) line.add({ type: 'WRITE', path: '/root/a' });
  expect(taken(line)).toHaveLength(1);
  line.add({ type: 'WRITE', path: '/root/a' });
  line.add({ type: 'WRITE', path: '/root/b' });
  line.add({ type: 'WRITE', path: '/root/a' });
  expect(taken(line)).toHaveLength(3);
});

test('a waiting reader gets the next event, the end, and its own cancellation', async () => {
  const line = new Line('/root');
  const waiting = line.more(new AbortController().signal);
  line.add({ type: 'DELETE', path: '/root/a' });
  await waiting;
  const left = new AbortController();
  const canceled = line.more(left.signal);
  left.abort();
  await canceled;
  const last = line.more(new AbortController().signal);
  line.end();
  await last;
  expect(line.ended).toBe(true);
});

import { EventEmitter } from 'node:events';
import type { FastifyReply } from 'fastify';
import { expect, test } from 'vitest';
import { takeProjectPlace } from './stream-places.ts';

const reader = () => ({ raw: new EventEmitter() }) as unknown as FastifyReply;

test('a project has 500 event streams of a kind, and a place again when a reader leaves', () => {
  const readers = Array.from({ length: 500 }, reader);
  for (const one of readers) takeProjectPlace('one', 'events', one);
  const another = () => takeProjectPlace('one', 'events', reader());
  expect(another).toThrow('This project has 500 open event streams');
  takeProjectPlace('one', 'deployments', reader());
  takeProjectPlace('two', 'events', reader());
  readers[0]!.raw.emit('close');
  another();
  expect(another).toThrow(expect.objectContaining({ code: 'too_many_streams' }));
});

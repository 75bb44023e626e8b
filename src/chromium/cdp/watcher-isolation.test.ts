import { expect, test } from 'vitest';
import { newSession, type Connection } from './session.ts';
import { Watching } from './watcher-isolation.ts';

test('a target with many paused sessions is not looked through for each that resumes or leaves', () => {
  let looks = 0;
  const owner = {
    get watching() {
      looks += 1;
      return false;
    },
  } as Connection;
  const sessions = Array.from({ length: 1000 }, (_, at) => newSession(String(at), owner, undefined, 'T'));
  const watching = new Watching((done) => done());
  const watcher = newSession('watcher', { watching: true } as Connection, undefined, 'T');
  let resumed = 0;
  for (const session of [watcher, ...sessions]) watching.paused(session);
  for (const session of sessions) watching.resume(session, () => void (resumed += 1));
  for (const session of sessions.slice(0, 500)) watching.forget(session);
  expect(resumed).toBe(0);
  watching.resume(watcher, () => void (resumed += 1));
  expect(resumed).toBe(501);
  expect(looks).toBeLessThan(10 * sessions.length);
});

import { expect, test } from 'vitest';
import { seededRandom, trickyText, trickyValue } from '../../../test/support/random.ts';
import { sessionOf } from './message.ts';

const SESSION = '0123456789ABCDEF0123456789ABCDEF';
const OTHER = 'FEDCBA9876543210FEDCBA9876543210';

test('reads the session off the end of any message as JSON.parse would', () => {
  const random = seededRandom(7);
  const wrong: unknown[] = []; // an expect for each takes longer than the reading
  for (let round = 0; round < 50_000; round++) {
    const payload = {
      [trickyText(random)]: trickyValue(random),
      sessionId: random(2) ? OTHER : trickyText(random),
      last: random(2) ? `,"sessionId":"${OTHER}"}` : { a: 1, sessionId: OTHER },
    };
    const body = random(2) ? { id: random(1000), result: payload } : { method: 'A.b', params: payload };
    const text = JSON.stringify({ ...body, ...(random(2) && { sessionId: SESSION }) });
    const { sessionId }: { sessionId?: string } = JSON.parse(text);
    const found = sessionOf([Buffer.from(text)]);
    if (found !== sessionId) wrong.push({ text, found, sessionId });
  }
  expect(wrong.slice(0, 3)).toEqual([]);
});

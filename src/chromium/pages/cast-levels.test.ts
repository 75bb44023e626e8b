import { expect, test } from 'vitest';
import { atBest, follow, levelOf, type Look, type Standing } from './cast-levels.ts';

const late: Look = { delay: 700, unsent: 0 };
const quick: Look = { delay: 30, unsent: 0 };
const still: Look = { delay: 0, unsent: 0 };

function after(standing: Standing, ...looks: readonly Look[]): Standing {
  return looks.reduce(follow, standing);
}
const times = (count: number, look: Look) => Array.from({ length: count }, () => look);
/** The levels after each of these looks. */
function levels(standing: Standing, looks: readonly Look[]): string[] {
  return looks.map((look) => levelOf((standing = follow(standing, look))));
}

test('a viewer that keeps up has the best pictures', () => {
  expect(levelOf(after(atBest, ...times(1000, quick)))).toBe('high');
});

test('one late look changes nothing, two in a row lower the level', () => {
  expect(levels(atBest, [late, quick, late, quick])).toEqual(['high', 'high', 'high', 'high']);
  expect(levels(atBest, [late, late])).toEqual(['high', 'medium']);
});

test('it goes down step by step while that helps, and not below the least', () => {
  const looks = [2500, 1900, 1400, 1000, 700].flatMap((delay) => times(2, { delay: delay / 2, unsent: 0 }));
  expect(levels(atBest, looks).filter((_, i) => i % 2 === 1)).toEqual(['medium', 'low', 'least', 'least', 'least']);
});

test('a very late picture lowers the quality to the minimum at once', () => {
  expect(levels(atBest, [{ delay: 8000, unsent: 0 }])).toEqual(['least']);
});

test('what waits in the service lowers the level too', () => {
  const waits = { delay: 10, unsent: 1024 * 1024 };
  expect(levels(atBest, [waits, waits])).toEqual(['high', 'medium']);
});

test('calm looks raise it step by step, and a page that does not change becomes sharp', () => {
  for (const look of [quick, still]) {
    const low = after(atBest, { delay: 8000, unsent: 0 });
    const seen = levels(low, times(9, look));
    expect(seen).toEqual(['least', 'least', 'low', 'low', 'low', 'medium', 'medium', 'medium', 'high']);
  }
});

test('a delay between late and calm keeps the level', () => {
  const medium = after(atBest, late, late);
  expect(levelOf(after(medium, ...times(100, { delay: 300, unsent: 0 })))).toBe('medium');
});

test('a level that proved too much is tried less and less often, and as before when it holds', () => {
  let standing = after(atBest, late, late);
  const waits: number[] = [];
  for (let tries = 0; tries < 6; tries++) {
    let calm = 0;
    for (; standing.rung > 0; calm++) standing = follow(standing, quick);
    waits.push(calm);
    standing = after(standing, late, late);
  }
  expect(waits).toEqual([3, 6, 12, 24, 48, 60]);
  standing = after(standing, ...times(60, quick)); // raised once more
  expect(levelOf(standing)).toBe('high');
  expect(after(standing, ...times(60, quick)).patience).toBe(atBest.patience);
});

test('a viewer far away, to which small pictures are as late as large ones, gets the large ones', () => {
  const far = { delay: 650, unsent: 0 };
  expect(levels(atBest, times(4, far))).toEqual(['high', 'medium', 'medium', 'high']);
  const known = after(atBest, ...times(4, far));
  expect(levelOf(after(known, ...times(100, far)))).toBe('high');
  expect(levelOf(after(known, ...times(2, { delay: 1500, unsent: 0 })))).toBe('medium'); // and its queues are noticed
  expect(levelOf(after(known, quick, late, late))).toBe('medium'); // it has come near: the usual delay counts again
});

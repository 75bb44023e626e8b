import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { turns } from './turns.ts';

const limits = { atOnce: 8, eachProvider: 8, eachProject: 8, mostWaiting: 50, waitMs: 60_000 };

/** Operations that are named `project provider number`, and run until a test ends them. */
function setUp(some: Partial<typeof limits>) {
  const inTurn = turns({ ...limits, ...some });
  const began: string[] = [];
  const ends = new Map<string, (error?: Error) => void>();
  return {
    began,
    start(name: string): Promise<void> {
      const [project, provider] = name.split(' ');
      const ended = inTurn({ project: project!, provider: provider! }, () => {
        began.push(name);
        return new Promise<void>((resolve, reject) => ends.set(name, (error) => (error ? reject(error) : resolve())));
      });
      ended.catch(() => {}); // some still wait at the end of a test, and are refused a minute later
      return ended;
    },
    async end(name: string, error?: Error) {
      ends.get(name)!(error);
      await turn();
    },
  };
}

test('no more than two run at a time, in the order of one project, also after an error', async () => {
  const { began, start, end } = setUp({ atOnce: 2 });
  const names = [1, 2, 3, 4, 5].map((number) => `a p ${number}`);
  const works = names.map((name) => start(name).catch(() => {}));
  expect(began).toEqual(names.slice(0, 2));
  for (const [at, name] of names.entries()) {
    await end(name, at % 2 === 0 ? undefined : new Error('failed'));
    expect(began).toEqual(names.slice(0, at + 3));
  }
  await Promise.all(works);
});

test('projects that share a provider take turns there', async () => {
  const { began, start, end } = setUp({ eachProvider: 1 });
  for (const name of ['a p 1', 'a p 2', 'a p 3', 'a p 4', 'b p 1', 'b p 2', 'c p 1']) void start(name);
  for (let at = 0; at < 6; at++) await end(began[at]!);
  expect(began).toEqual(['a p 1', 'a p 2', 'b p 1', 'c p 1', 'a p 3', 'b p 2', 'a p 4']);
});

test('a slow store takes no turns of another', async () => {
  const { began, start } = setUp({ atOnce: 4, eachProvider: 2 });
  for (let number = 1; number <= 6; number++) void start(`a slow ${number}`);
  void start('a quick 1');
  await turn();
  expect(began).toEqual(['a slow 1', 'a slow 2', 'a quick 1']);
});

test('a project that uses many slow stores leaves turns to others', async () => {
  const { began, start, end } = setUp({ atOnce: 4, eachProject: 2 });
  for (let number = 1; number <= 6; number++) void start(`a p${number} 1`);
  void start('b q 1');
  await turn();
  expect(began).toEqual(['a p1 1', 'a p2 1', 'b q 1']);
  await end('a p2 1');
  expect(began.slice(3)).toEqual(['a p3 1']);
});

test('an operation that waits too long is refused, and takes no turn', async () => {
  const { began, start, end } = setUp({ atOnce: 1, waitMs: 0 });
  const first = start('a p 1');
  await expect(start('a p 2')).rejects.toMatchObject({ code: 'busy' });
  await end('a p 1');
  await first;
  void start('a p 3');
  expect(began).toEqual(['a p 1', 'a p 3']);
});

test('a project has a bounded number of operations that wait', async () => {
  const { began, start, end } = setUp({ atOnce: 1, mostWaiting: 2 });
  for (const name of ['a p 1', 'a p 2', 'a p 3']) void start(name);
  await expect(start('a p 4')).rejects.toMatchObject({ code: 'busy' });
  void start('b p 1');
  await end('a p 1');
  await end('a p 2');
  expect(began).toEqual(['a p 1', 'a p 2', 'b p 1']);
});

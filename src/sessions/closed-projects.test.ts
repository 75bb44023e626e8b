import { expect, test } from 'vitest';
import { silent } from '../lib/log.ts';
import { closedProjects } from './closed-projects.ts';

/** Answers come in the order of `answers`; the queries are recorded. */
function setUp(answers: (string[] | Error)[]) {
  const asked: string[][] = [];
  const ended: string[] = [];
  const projects = closedProjects({
    here: () => ['a', 'b'],
    async closedAmong(ids) {
      asked.push(ids);
      const answer = answers.shift() ?? [];
      if (answer instanceof Error) throw answer;
      return answer;
    },
    end: (id) => ended.push(id),
    log: silent,
  });
  return { projects, asked, ended };
}

test('sessions of closed projects are ended, the others not', async () => {
  const { projects, asked, ended } = setUp([['b']]);
  projects.sweep();
  await expect.poll(() => ended).toEqual(['b']);
  expect(asked).toEqual([['a', 'b']]);
});

test('a database that does not answer is asked again', async () => {
  const { projects, asked, ended } = setUp([new Error('away'), new Error('away'), ['a']]);
  projects.sweep();
  await expect.poll(() => ended, { timeout: 60_000 }).toEqual(['a']);
  expect(asked).toHaveLength(3);
});

test('a project that is closed while the database is asked is not missed', async () => {
  const { projects, ended } = setUp([['a'], ['b']]);
  projects.sweep();
  projects.sweep();
  await expect.poll(() => ended).toEqual(['a', 'b']);
});

test('nothing is asked any more once it is closed', async () => {
  const { projects, asked } = setUp([new Error('away'), ['a']]);
  projects.sweep();
  await expect.poll(() => asked).toHaveLength(1);
  projects.close();
  projects.sweep();
  await new Promise((resolve) => setImmediate(resolve));
  expect(asked).toHaveLength(1);
});

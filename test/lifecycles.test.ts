import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { deploymentLife, invocationLife } from '../src/deployments/state.ts';
import { connectionLife, loginLife } from '../src/logins/state.ts';
import { replayLife } from '../src/sessions/replays/state.ts';
import { sessionLife } from '../src/sessions/state.ts';

const root = join(import.meta.dirname, '../src');
const sources = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
  .map((file) => ({ file, text: readFileSync(join(root, file), 'utf8') }));

/** Each lifecycle with the folder of the code that applies its events. */
const lives = {
  deployments: [deploymentLife, invocationLife],
  logins: [connectionLife, loginLife],
  'sessions/replays': [replayLife],
  sessions: [sessionLife],
};

test('every event of a lifecycle is applied by the code of its room', () => {
  const unused = Object.entries(lives).flatMap(([folder, tables]) => {
    const code = sources
      .filter(({ file }) => file.startsWith(`${folder}/`) && file !== `${folder}/state.ts`)
      .map(({ text }) => text)
      .join('\n');
    const events = tables.flatMap((life) => Object.keys(life.events));
    return events.filter((event) => !code.includes(`'${event}'`)).map((event) => `${folder}: ${event}`);
  });
  expect(unused).toEqual([]);
});

/** Assignments of a literal to a column with a lifecycle. `set` ends with its `where`, or with the statement. */
function literals(text: string): string[] {
  const sets = [
    ...text.matchAll(/\bupdate (sessions|replays|deployments|invocations|auth_runs|auth_connections)\b([^`]*)/g),
  ];
  return sets.flatMap(([, table, rest]) => {
    const assignments = /\bset\b([^`]*?)(?:\bwhere\b|$)/.exec(rest!)?.[1] ?? '';
    return [...assignments.matchAll(/\b(?:status|state) = ([^,]*)/g)]
      .filter(([, value]) => value!.includes("'"))
      .map(([assignment]) => `${table}: ${assignment}`);
  });
}

test('no update sets a status or a state by a literal', () => {
  const found = sources.flatMap(({ file, text }) => literals(text).map((literal) => `${file}: ${literal}`));
  expect(found).toEqual([]);
});

test.each([
  ["update sessions set state = 'failed' where id = 1", 1],
  [
    "update deployments d set updated_at = now(), status = case when a > 1 then 'failed' else 'queued' end where true",
    1,
  ],
  ["update invocations set output = 1, status = ${to} where status = 'queued'", 0],
  ["update auth_runs set attended_at = now() where id = 1 and status = 'IN_PROGRESS'", 0],
])('the search for literals reads %s', (text, count) => {
  expect(literals(text)).toHaveLength(count);
});

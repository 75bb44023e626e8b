import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { operationsOf } from '../../scripts/operations.mjs';
import { nouns } from './nouns.ts';
import type { Verb } from './table.ts';

const operations = operationsOf(JSON.parse(readFileSync('openapi.json', 'utf8')) as object);

const verbs: [path: string, verb: Verb][] = [];
const visit = (verb: Verb, path: string): void =>
  verb.verbs ? verb.verbs.forEach((one) => visit(one, `${path} ${one.name}`)) : void verbs.push([path, verb]);
for (const noun of nouns) {
  const loaded = await noun.load!();
  if (Array.isArray(loaded)) (loaded as Verb[]).forEach((verb) => visit(verb, `${noun.name} ${verb.name}`));
  else visit(loaded as Verb, noun.name);
}

test.each(verbs)('corral %s uses an operation of the API and has two examples', (_, verb) => {
  expect(verb.examples).toHaveLength(2);
  const operation = verb.operation === undefined ? undefined : operations[verb.operation];
  if (verb.operation === undefined) return expect(verb.run).toBeDefined();
  expect(operation).toBeDefined();
  const fields = [...operation!.query, ...operation!.body].map(({ name }) => name);
  expect(fields).toEqual(expect.arrayContaining([...(verb.takes ?? []), ...(verb.without ?? [])]));
});

/** Operations of verbs with several requests, or without use at a terminal. */
const otherwise = [
  ['does/', 'createApiKey listApiKeys deleteApiKey deleteFile deleteDirectory downloadDirZip uploadZip'],
  ['does/', 'streamFsEvents stopFsWatch exportBrowserTelemetryTrace'],
  ['not for a terminal', 'health ready metrics signInToConsole exchangeAuthConnectionHandoffCode'],
  ['not for a terminal', 'getBrowserThumbnail getOrgLimits updateOrgLimits uploadFiles uploadZstd downloadDirZstd'],
].flatMap(([, names]) => names!.split(' '));

test('every operation of the API has a verb', () => {
  const reached = new Set([...verbs.map(([, verb]) => verb.operation), ...otherwise]);
  expect(Object.keys(operations).filter((name) => !reached.has(name))).toEqual([]);
});

test('fields of the API become options with their kinds', () => {
  const fields = (name: string) => Object.fromEntries(operations[name]!.body.map((field) => [field.name, field]));
  expect(fields('createBrowser')).toMatchObject({
    headless: { type: 'boolean' },
    timeout_seconds: { type: 'number' },
    tags: { type: 'json', kind: { type: 'object' } },
    'viewport.width': { type: 'number' },
    'profile.name': { type: 'string' },
  });
  expect(fields('createProxy')).toMatchObject({ type: { values: expect.arrayContaining(['custom']), required: true } });
  expect(fields('updateBrowser')['telemetry']).toMatchObject({ kind: { type: ['object', 'null'] } });
  const pairs = { type: 'array', items: { type: 'integer' } };
  expect(fields('dragMouse')['path']).toMatchObject({ kind: { type: 'array', items: pairs } });
  expect(fields('pressKey')).toMatchObject({ keys: { type: 'string', many: true, required: true } });
  expect(operations['listBrowsers']!.query.find(({ name }) => name === 'limit')).not.toHaveProperty('required');
});

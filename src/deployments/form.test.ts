import { expect, test } from 'vitest';
import { readForm } from './form.ts';

const read = (fields: Record<string, string>, hasFile = true) => readForm(new Map(Object.entries(fields)), hasFile);
const entry = { entrypoint_rel_path: 'index.ts' };
const manyLines = Array.from({ length: 600 }, (_, at) => `line ${at}`.padEnd(64, '.')).join('\n');

test('a form with a zip has a version, variables and no force unless it says so', () => {
  expect(read({ ...entry, 'env_vars[A]': '1', 'env_vars.B': '2' })).toEqual({
    version: 'latest',
    force: false,
    region: undefined,
    env: { A: '1', B: '2' },
    entrypoint: 'index.ts',
    git: undefined,
  });
  expect(read({ ...entry, env_vars: '{"A":"1"}', version: '2', force: 'true' })).toMatchObject({
    env: { A: '1' },
    version: '2',
    force: true,
  });
});

test('a form with a repository has what git needs', () => {
  const source = { type: 'github', url: 'https://git.example/a.git', ref: 'main', entrypoint: 'index.ts', path: 'app' };
  expect(read({ source: JSON.stringify(source) }, false).git).toEqual(source);
});

test.each([
  ['a reserved name', { ...entry, 'env_vars[KERNEL_API_KEY]': 'x' }, /KERNEL_API_KEY is set by the service/],
  ['the address of the service', { ...entry, 'env_vars[KERNEL_BASE_URL]': 'x' }, /KERNEL_BASE_URL/],
  ['the entry point as a variable', { ...entry, 'env_vars[ENTRYPOINT_RELPATH]': 'x' }, /ENTRYPOINT_RELPATH/],
  ['a name with a dash', { ...entry, 'env_vars[A-B]': 'x' }, /no name of a variable/],
  ['more lines than can be hidden', { ...entry, 'env_vars[A]': manyLines }, /more lines than can be hidden/],
  ['variables that are no strings', { ...entry, env_vars: '{"A":1}' }, /env_vars.A is not a string/],
  ['a field of something else', { ...entry, colour: 'red' }, /colour is not a field/],
  ['a force that is no boolean', { ...entry, force: 'yes' }, /force is 'yes'/],
  ['a version with a slash', { ...entry, version: 'a/b' }, /version must have/],
  ['no entry point', {}, /entrypoint_rel_path is missing/],
])('%s is refused', (_, fields, sentence) => expect(() => read(fields)).toThrow(sentence));

test('a source that lacks a field is refused by the name of the field', () => {
  expect(() => read({ source: '{"type":"github","url":"https://git.example/a.git"}' }, false)).toThrow(/source/);
  expect(() => read({ source: '{' }, false)).toThrow(/source is not JSON/);
});

test('a form with neither a zip nor a repository, or with both, is refused', () => {
  expect(() => read({}, false)).toThrow(/either file/);
  expect(() => read({ ...entry, source: '{}' })).toThrow(/either file/);
});

test('JSON of many values is refused before it is parsed', () => {
  const many = JSON.stringify(Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`K${at}`, ''])));
  expect(() => readForm(new Map([['env_vars', many]]), true)).toThrow('env_vars has more than 800 names and values');
  expect(() => readForm(new Map([['source', many]]), false)).toThrow('source has more than 800 names and values');
});

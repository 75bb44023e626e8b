import { expect, test } from 'vitest';
import { checkOf, inWords } from './arguments.ts';

const env = { type: 'object', additionalProperties: { type: 'string' } };
const inputSchema = { type: 'object', properties: { env, hosts: { type: 'array', items: { type: 'string' } } } };

test.each([
  [{ hosts: ['a', 1] }, 'arguments.hosts[1] must be string'],
  [{ env: { 'a/b': 1, c: 2 } }, "arguments.env['a/b'] must be string, arguments.env['c'] must be string"],
  [{ env: { ['/'.repeat(1000)]: 1 } }, `arguments.env['${'/'.repeat(194)}… must be string`],
])('a mistake is named by its path, which is shortened and not escaped', async (args, words) => {
  const check = await checkOf({ name: 'run', inputSchema } as never, { operation: () => {} } as never);
  expect(check(args)).toBe(false);
  expect(inWords(check.errors)).toBe(words);
});

import { expect, test } from 'vitest';
import type { Destinations } from '../egress/destinations.ts';
import { only } from './only.ts';

const by: Destinations = {
  check: async (host, port) => ({ host, port, addresses: ['192.0.2.1'] }),
  checkUnresolved: (host, port) => ({ host, port }),
};
const allow = only([
  { url: 'https://registry.example/npm/', by },
  { url: 'http://git.example:8080', by },
]);

test('the servers of the list are reached by their own rules', async () => {
  expect(await allow.check('Registry.example', 443)).toMatchObject({ addresses: ['192.0.2.1'] });
  expect(allow.checkUnresolved('git.example', 8080)).toEqual({ host: 'git.example', port: 8080 });
});

test.each([
  ['registry.example', 80],
  ['evil.example', 443],
  ['registry.example.evil.example', 443],
  ['127.0.0.1', 443],
])('%s:%i is refused', async (host, port) => {
  await expect(allow.check(host, port)).rejects.toThrow(/A build may reach registry.example:443/);
  expect(() => allow.checkUnresolved(host, port)).toThrow(/A build may reach/);
});

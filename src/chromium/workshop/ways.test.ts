import { expect, test } from 'vitest';
import { waysTo } from './ways.ts';

test('an address is reached under itself, a name under a loopback address of its own', () => {
  expect(
    waysTo([
      'http://127.0.0.1:3000',
      'https://a.example',
      'https://b.example/',
      'http://10.1.2.3:80/x',
      'http://[::1]:3000',
    ]),
  ).toEqual([
    { listener: { address: '127.0.0.1', port: 3000 }, name: undefined, target: { host: '127.0.0.1', port: 3000 } },
    { listener: { address: '127.64.0.2', port: 443 }, name: 'a.example', target: { host: 'a.example', port: 443 } },
    { listener: { address: '127.64.0.3', port: 443 }, name: 'b.example', target: { host: 'b.example', port: 443 } },
    { listener: { address: '10.1.2.3', port: 80 }, name: undefined, target: { host: '10.1.2.3', port: 80 } },
    { listener: { address: '::1', port: 3000 }, name: undefined, target: { host: '::1', port: 3000 } },
  ]);
});

test('the hosts of sessions have one way together: to where their DNS leads, or without TLS to this service', () => {
  const hosts = ['http://127.0.0.1:3000', 'https://*.s.example', 'http://*.s.test'];
  expect(waysTo(hosts, 'http://127.0.0.1:3000').slice(1)).toEqual([
    {
      listener: { address: '127.64.0.2', port: 443 },
      name: '*.s.example',
      target: { host: 'any.s.example', port: 443 },
    },
    { listener: { address: '127.64.0.3', port: 80 }, name: '*.s.test', target: { host: '127.0.0.1', port: 3000 } },
  ]);
});

test('a URL that several nodes have is one way', () => {
  expect(waysTo(['https://a.example', 'https://a.example:443/other'])).toHaveLength(1);
});

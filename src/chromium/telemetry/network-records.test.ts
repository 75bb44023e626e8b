import { expect, test } from 'vitest';
import { serverOf } from './network-records.ts';
import type { Response } from './shapes.ts';

const proxy = { address: '127.0.0.1', port: 3128 };
const from = (remoteIPAddress?: string, remotePort = 443) =>
  serverOf({ ...(remoteIPAddress !== undefined && { remoteIPAddress }), remotePort } as Response, proxy);

test('the address of a server is captured without brackets, and never the address of the proxy', () => {
  expect(from('192.0.2.7')).toBe('192.0.2.7');
  expect(from('[2001:db8::1]')).toBe('2001:db8::1');
  expect(from('127.0.0.1', 8080)).toBe('127.0.0.1');
  expect(from('127.0.0.1', 3128)).toBeUndefined();
  expect(from()).toBeUndefined();
});

test('text that is no address is not captured', () => {
  expect(from('')).toBeUndefined();
  expect(from('x'.repeat(1e6))).toBeUndefined();
  expect(from(`[${'['.repeat(1e5)}`)).toBeUndefined();
});

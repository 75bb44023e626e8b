import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { findings, netError } from './findings.ts';
import { EgressError, type EgressCode } from './refusals.ts';

const failure = (code: EgressCode, cause?: Error) => new EgressError(code, 'It failed.', { cause });

test('failures have the names that Chromium has for them', () => {
  const caused = (code: string, message = code) =>
    failure('connect_failed', Object.assign(new Error(message), { code }));
  expect(netError(caused('ECONNREFUSED'))).toBe('ERR_CONNECTION_REFUSED');
  expect(netError(caused('EHOSTUNREACH'))).toBe('ERR_ADDRESS_UNREACHABLE');
  expect(netError(caused('ECONNRESET'))).toBe('ERR_CONNECTION_RESET');
  expect(netError(caused('ECONNRESET', 'socket hang up'))).toBe('ERR_EMPTY_RESPONSE');
  expect(netError(caused('EWHATEVER'))).toBe('ERR_CONNECTION_FAILED');
  expect(netError(failure('dns_failed'))).toBe('ERR_NAME_NOT_RESOLVED');
  expect(netError(failure('proxy_unreachable'))).toBe('ERR_PROXY_CONNECTION_FAILED');
  expect(netError(failure('destination_refused'))).toBeUndefined();
});

test('the last attempt counts, by host and port', () => {
  const found = findings();
  found.failed('http://Shop.test/path:1', failure('dns_failed'));
  found.failed('shop.test:443', failure('connect_timeout'));
  found.failed('http://[::1]:81/', failure('connect_failed'));
  expect(found.failure('shop.test:80')).toBe('net::ERR_NAME_NOT_RESOLVED');
  expect(found.failure('shop.test:443')).toBe('net::ERR_CONNECTION_TIMED_OUT');
  expect(found.failure('[::1]:81')).toBe('net::ERR_CONNECTION_FAILED');
  found.failed('shop.test:443', failure('destination_refused'));
  expect(found.failure('shop.test:443')).toBeUndefined();
});

test('servers are known until a proxy or another way out leads there', () => {
  const found = findings();
  const socket = { remoteAddress: '192.0.2.1', remotePort: 443 } as Socket;
  found.reached('Shop.test', 443, socket);
  expect(found.server('shop.test:443')).toEqual({ address: '192.0.2.1', port: 443 });
  found.reached('shop.test', 443, undefined);
  expect(found.server('shop.test:443')).toBeUndefined();
  found.reached('shop.test', 443, socket);
  found.wayChanged();
  expect(found.server('shop.test:443')).toBeUndefined();
});

test('a page that asks for many destinations does not fill memory', () => {
  const found = findings();
  for (let i = 0; i < 5000; i++) found.failed(`host-${i}.test:80`, failure('dns_failed'));
  expect(found.failure('host-0.test:80')).toBeUndefined();
  expect(found.failure('host-4999.test:80')).toBe('net::ERR_NAME_NOT_RESOLVED');
});

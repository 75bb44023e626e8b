import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { keyring } from '../lib/seal.ts';
import { tokens } from '../lib/tokens.ts';
import { credentials } from './credential.ts';
import type { Passenger } from '../lib/caller.ts';

const ring = keyring([randomBytes(32)]);
const at = (seconds: number, keys = ring) => {
  const now = () => seconds * 1000;
  return credentials({ tokens: tokens(() => keys, now, 'node to node'), now });
};
const journey = { to: 'node_b', method: 'POST', url: '/browsers?x=1' };
const passenger: Passenger = {
  requestId: 'req_1',
  clientIp: '192.0.2.1',
  caller: { keyId: 'key_1', keyName: 'laptop', projectId: null },
  project: { id: 'proj_1', name: 'Default' },
};

test('a credential names the original caller', () => {
  expect(at(1).read(at(0).write(journey, passenger), journey)).toEqual(passenger);
});

test.each<[string, { seconds?: number; to?: string; method?: string; url?: string }, string]>([
  ['after half a minute', { seconds: 31 }, 'expired'],
  ['at another node', { to: 'node_c' }, 'for another node'],
  ['with another method', { method: 'DELETE' }, 'for another request'],
  ['on another path', { url: '/browsers/abc' }, 'for another request'],
  ['with another query', { url: '/browsers?x=2' }, 'for another request'],
])('a credential is worth nothing %s', (_, { seconds = 1, ...change }, fault) => {
  expect(at(seconds).read(at(0).write(journey, passenger), { ...journey, ...change })).toBe(fault);
});

test('a credential is good once, and for a body of that type and length', () => {
  const node = at(1);
  const sent = { ...journey, headers: { 'content-type': 'application/json', 'content-length': '2' } };
  const credential = at(0).write(sent, passenger, '{}');
  expect(node.read(credential, { ...sent, headers: { ...sent.headers, 'content-length': '3' } })).toBe(
    'for another request',
  );
  expect(node.read(credential, { ...sent, headers: { ...sent.headers, 'content-type': 'x/y' } })).toBe(
    'for another request',
  );
  expect(node.read(credential, sent)).toEqual({ ...passenger, bodyDigest: expect.any(String) });
  expect(node.read(credential, sent)).toBe('used before');
});

test('neither a foreign key nor a session’s token creates a valid credential', () => {
  expect(at(1).read(at(0, keyring([randomBytes(32)])).write(journey, passenger), journey)).toBe('forged');
  const sessionToken = tokens(
    () => ring,
    () => 0,
  ).sign({ sub: JSON.stringify({ passenger }), aud: journey.to, exp: 1000 });
  expect(at(1).read(sessionToken, journey)).toBe('forged');
  expect(at(1).read('anything', journey)).toBe('malformed');
});

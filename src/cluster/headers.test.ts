import type { IncomingMessage } from 'node:http';
import { expect, test } from 'vitest';
import { passedOnHeaders } from './headers.ts';

const passedOn = (url: string, ...rawHeaders: string[]) =>
  passedOnHeaders({ url, rawHeaders, headers: {} } as unknown as IncomingMessage);

test('a key is not sent to another node, whichever header it came in', () => {
  const headers = ['Authorization', 'Bearer sk', 'Steel-Api-Key', 'sk', 'Accept', 'text/html', 'Host', 'a'];
  expect(passedOn('/v1/sessions', ...headers)).toEqual(['Accept', 'text/html']);
});

test('what came with a token in its address is for the session, with all its headers', () => {
  expect(passedOn('/browser/kernel/token/curl', 'Authorization', 'Bearer theirs')).toEqual([
    'Authorization',
    'Bearer theirs',
  ]);
});

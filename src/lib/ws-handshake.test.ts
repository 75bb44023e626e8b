import type { IncomingMessage } from 'node:http';
import { expect, test } from 'vitest';
import { answerHandshake } from './ws-handshake.ts';

const good = {
  upgrade: 'websocket',
  connection: 'Upgrade',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
};
const ask = (headers: Record<string, string | undefined> = {}, { method = 'GET', httpVersion = '1.1' } = {}) =>
  answerHandshake({ method, httpVersion, headers: { ...good, ...headers } } as unknown as IncomingMessage);

test('the example of RFC 6455 gets the answer of RFC 6455', () => {
  expect(ask()).toEqual({ accept: 's3pPLMBiTxaQ9kYGzzhZRbK+xOo=' });
});

test.each([
  ['lists of tokens', { upgrade: 'h2c, WebSocket', connection: 'keep-alive,UPGRADE' }],
  ['extensions', { 'sec-websocket-extensions': 'permessage-deflate' }],
])('%s are understood', (_what, headers) => expect(ask(headers)).toHaveProperty('accept'));

test.each([
  ['another protocol', { upgrade: 'h2c' }],
  ['a word that only contains it', { upgrade: 'websockets' }],
  ['no Upgrade', { upgrade: undefined }],
  ['no Connection', { connection: undefined }],
  ['a Connection that does not name it', { connection: 'keep-alive' }],
  ['no key', { 'sec-websocket-key': undefined }],
  ['two keys', { 'sec-websocket-key': `${good['sec-websocket-key']}, ${good['sec-websocket-key']}` }],
  ['a key of 15 bytes', { 'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAA' }],
])('%s is a bad request', (_what, headers) => expect(ask(headers)).toMatchObject({ status: 400 }));

test.each(['12', '14', '13, 8', '', undefined])(
  'version %s is refused with the version that is supported',
  (version) => {
    expect(ask({ 'sec-websocket-version': version })).toMatchObject({
      status: 426,
      headers: { 'Sec-WebSocket-Version': '13' },
    });
  },
);

test.each([{ method: 'POST' }, { httpVersion: '1.0' }])('%o opens no websocket', (line) => {
  expect(ask({}, line)).toMatchObject({ status: 400 });
});

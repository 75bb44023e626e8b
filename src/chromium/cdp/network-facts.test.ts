import { expect, test } from 'vitest';
import { destinationOf, NetworkFacts } from './network-facts.ts';
import type { Message } from './pipe.ts';

const tunnel = 'net::ERR_TUNNEL_CONNECTION_FAILED';

function facts() {
  const failures = new Map<string, string>();
  const servers = new Map<string, { address: string; port: number }>();
  const known = new NetworkFacts({
    proxy: { address: '127.0.0.1', port: 3128 },
    failure: (destination) => failures.get(destination),
    server: (destination) => servers.get(destination),
  });
  const pieces = (text: string, cut?: number): Message =>
    cut === undefined ? [Buffer.from(text)] : [Buffer.from(text.slice(0, cut)), Buffer.from(text.slice(cut))];
  const event = (method: string, params: object, cut?: number) => {
    const message = pieces(JSON.stringify({ method, params }), cut);
    known.correct(message);
    return JSON.parse(Buffer.concat(message).toString()).params;
  };
  const sent = (requestId: string, url: string, more: object = {}) =>
    event('Network.requestWillBeSent', { requestId, loaderId: 'L', documentURL: url, request: { url }, ...more });
  const navigated = (result: object, url?: string) => {
    const message = pieces(JSON.stringify({ id: 1, result }));
    known.correctNavigation(message, url);
    return JSON.parse(Buffer.concat(message).toString()).result;
  };
  return { failures, servers, event, sent, navigated, failureOf: known.failureOf.bind(known) };
}

test('a failed request has the reason that the gateway knows', () => {
  const { failures, event, sent } = facts();
  failures.set('shop.test:443', 'net::ERR_NAME_NOT_RESOLVED').set('shop.test:8080', 'net::ERR_CONNECTION_REFUSED');
  sent('1', 'https://shop.test/a?b');
  sent('2', 'http://user:word@Shop.test:8080');
  sent('3', 'https://other.test/');
  const failed = (requestId: string, errorText: string, cut?: number) =>
    event('Network.loadingFailed', { requestId, type: 'Document', errorText, canceled: false }, cut).errorText;
  expect(failed('1', tunnel)).toBe('net::ERR_NAME_NOT_RESOLVED');
  expect(failed('1', tunnel, 90)).toBe('net::ERR_NAME_NOT_RESOLVED');
  expect(failed('2', 'net::ERR_EMPTY_RESPONSE')).toBe('net::ERR_CONNECTION_REFUSED');
  expect(failed('3', tunnel)).toBe(tunnel);
  expect(failed('4', tunnel)).toBe(tunnel);
  expect(failed('1', 'net::ERR_ABORTED')).toBe('net::ERR_ABORTED');
  const logged = { text: `Failed to load resource: ${tunnel}`, networkRequestId: '1' };
  expect(event('Log.entryAdded', { entry: logged }).entry.text).toBe(
    'Failed to load resource: net::ERR_NAME_NOT_RESOLVED',
  );
  event('Network.webSocketCreated', { requestId: '5', url: 'ws://shop.test:8080/' });
  expect(event('Network.webSocketFrameError', { requestId: '5', errorMessage: `Error: ${tunnel}` }).errorMessage).toBe(
    'Error: net::ERR_CONNECTION_REFUSED',
  );
});

test('a failure without its request is found by its address', () => {
  const { failures, failureOf } = facts();
  failures.set('shop.test:443', 'net::ERR_NAME_NOT_RESOLVED');
  expect(failureOf(tunnel, 'https://shop.test/a')).toBe('net::ERR_NAME_NOT_RESOLVED');
  expect(failureOf(tunnel, 'https://other.test/')).toBe(tunnel);
  expect(failureOf(undefined, 'https://shop.test/a')).toBe('net::ERR_NAME_NOT_RESOLVED');
  expect(failureOf(undefined, 'https://other.test/')).toBeUndefined();
  expect(failureOf(tunnel, 'about:blank')).toBe(tunnel);
  expect(failureOf('net::ERR_CERT_DATE_INVALID', 'https://shop.test/a')).toBe('net::ERR_CERT_DATE_INVALID');
});

test('a navigation has it too, by its redirects or by the requested address', () => {
  const { failures, sent, navigated } = facts();
  failures.set('shop.test:443', 'net::ERR_NAME_NOT_RESOLVED').set('first.test:80', 'net::ERR_CONNECTION_REFUSED');
  sent('L1', 'http://first.test/');
  sent('L1', 'https://shop.test/');
  const errorText = tunnel;
  expect(navigated({ loaderId: 'L1', errorText }, 'http://first.test/').errorText).toBe('net::ERR_NAME_NOT_RESOLVED');
  expect(navigated({ loaderId: 'L2', errorText }, 'http://first.test/').errorText).toBe('net::ERR_CONNECTION_REFUSED');
  expect(navigated({ loaderId: 'L2', errorText }).errorText).toBe(tunnel);
  expect(navigated({ loaderId: 'L1' })).toEqual({ loaderId: 'L1' });
});

test('an answer names the server, not the gateway', () => {
  const { servers, event, sent } = facts();
  servers
    .set('shop.test:80', { address: '192.0.2.7', port: 80 })
    .set('six.test:443', { address: '2001:db8::1', port: 443 });
  const answer = (url: string, remoteIPAddress = '127.0.0.1', remotePort = 3128) => {
    const response = { url, status: 200, remoteIPAddress, remotePort, fromDiskCache: false };
    return event('Network.responseReceived', { requestId: '1', response }).response;
  };
  expect(answer('http://shop.test/')).toMatchObject({ remoteIPAddress: '192.0.2.7', remotePort: 80, status: 200 });
  expect(answer('https://six.test/')).toMatchObject({ remoteIPAddress: '[2001:db8::1]', remotePort: 443 });
  expect(answer('http://unknown.test/')).toMatchObject({ remoteIPAddress: '127.0.0.1', remotePort: 3128 });
  expect(answer('http://shop.test/', '127.0.0.1', 80)).toMatchObject({ remoteIPAddress: '127.0.0.1', remotePort: 80 });
  const redirectResponse = { url: 'http://shop.test/', remoteIPAddress: '127.0.0.1', remotePort: 3128, timing: {} };
  expect(sent('2', 'http://unknown.test/', { redirectResponse }).redirectResponse.remoteIPAddress).toBe('192.0.2.7');
});

test('headers are those that the server gets', () => {
  const { event } = facts();
  const headers = { Host: 'shop.test', 'Proxy-Connection': 'keep-alive', 'X-Text': '"Proxy-Connection":"x"' };
  expect(event('Network.requestWillBeSentExtraInfo', { requestId: '1', headers }).headers).toEqual({
    Host: 'shop.test',
    Connection: 'keep-alive',
    'X-Text': '"Proxy-Connection":"x"',
  });
  const quoting = { 'X-Text': '"Proxy-Connection":"x"' };
  expect(event('Network.requestWillBeSentExtraInfo', { requestId: '1', headers: quoting }).headers).toEqual(quoting);
});

test('a page cannot name the destination of a request of its own choice', () => {
  const { failures, event, sent } = facts();
  failures.set('wanted.test:80', 'net::ERR_NAME_NOT_RESOLVED');
  const trick = '"request":{"url":"http://wanted.test/';
  event('Network.requestWillBeSent', { requestId: '1', documentURL: trick, request: { url: 'http://real.test/' } });
  expect(event('Network.loadingFailed', { requestId: '1', errorText: tunnel }).errorText).toBe(tunnel);
  expect(sent('2', 'data:text/html,x').requestId).toBe('2');
});

test.each([
  ['http://a.test', 'a.test:80'],
  ['https://a.test?x', 'a.test:443'],
  ['wss://[::1]/x', '[::1]:443'],
  ['ws://[::1]:99/', '[::1]:99'],
  ['http://u:p@A.test:81/@x', 'a.test:81'],
  ['data:text/html,http://a.test/', undefined],
  ['', undefined],
])('the destination of %s is %s', (url, destination) => {
  expect(destinationOf(url)).toBe(destination);
});

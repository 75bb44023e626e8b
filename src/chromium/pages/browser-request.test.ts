import { expect, test } from 'vitest';
import { hiddenPages } from '../../../test/support/hidden-pages.ts';
import { requestThrough } from './browser-request.ts';

test('an answer has its own cookies, and not those of the redirect, in any order of the events', async () => {
  const paused = { networkId: 'n', request: { url: 'http://a/', method: 'GET', headers: {} } };
  const location = { name: 'Location', value: '/next' };
  const pages = hiddenPages((say) => {
    say('Fetch.requestPaused', { ...paused, requestId: '1' });
    say('Network.responseReceivedExtraInfo', {
      requestId: 'n',
      statusCode: 302,
      headers: { Location: '/next', 'Set-Cookie': 'hop=1' },
    });
    say('Fetch.requestPaused', { ...paused, requestId: '2', responseStatusCode: 302, responseHeaders: [location] });
    say('Fetch.requestPaused', { ...paused, requestId: '3', redirectedRequestId: '2' });
    say('Fetch.requestPaused', { ...paused, requestId: '4', responseStatusCode: 200, responseHeaders: [] });
    const last = { requestId: 'n', statusCode: 200, headers: { 'Set-Cookie': 'last=1' } };
    setTimeout(() => say('Network.responseReceivedExtraInfo', last), 20);
  });
  const request = { url: 'http://a/', method: 'GET', headers: [] };
  const { headers, body } = await requestThrough(pages, request, new AbortController().signal);
  expect(headers).toEqual([['Set-Cookie', 'last=1']]);
  body.destroy();
});

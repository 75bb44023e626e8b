import { expect, test } from 'vitest';
import { requestThrough } from './browser-request.ts';
import type { HiddenPage, HiddenPages } from './hidden-pages.ts';

/** A page whose Chromium says what it is told to, once it is sent somewhere. */
function pageThat(travels: (say: (event: string, params: object) => void) => void): HiddenPages {
  const listeners = new Set<[string, (params: object) => void]>();
  const say = (event: string, params: object) => {
    for (const [heard, listener] of listeners) if (heard === event) listener(params);
  };
  const answers: Record<string, object> = {
    'Fetch.takeResponseBodyAsStream': { stream: '1' },
    'IO.read': { data: 'end', eof: true },
  };
  const answered = async (method: string) => {
    if (method !== 'Page.navigate') return answers[method] ?? {};
    travels(say);
    await new Promise((resolve) => setTimeout(resolve, 100));
    return { errorText: 'net::ERR_ABORTED' };
  };
  const page: HiddenPage = {
    send: (method, ..._args) => answered(method),
    async ask(is, method, ..._args) {
      const result = await answered(method);
      if (!is(result)) throw new Error(`${method} is not answered like that`);
      return result;
    },
    on(event, is, listener) {
      const entry: [string, (params: object) => void] = [event, (params) => is(params) && listener(params)];
      listeners.add(entry);
      return () => listeners.delete(entry);
    },
  };
  return {
    use: (work) => work(page),
    get client(): never {
      throw new Error('it is not needed');
    },
  };
}

test('an answer has its own cookies, and not those of the one that led there, in whatever order Chromium tells of them', async () => {
  const paused = { networkId: 'n', request: { url: 'http://a/', method: 'GET', headers: {} } };
  const location = { name: 'Location', value: '/next' };
  const pages = pageThat((say) => {
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

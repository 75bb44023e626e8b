import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openForms } from '../../src/chromium/forms/forms.ts';
import { runWith } from '../../src/logins/flow/state-loop.ts';
import type { Explained, FlowState } from '../../src/logins/flow/types.ts';
import { read } from '../../src/logins/reading/read.ts';
import { muxServer, portOf } from '../support/mux-server.ts';

const form = `<form method="post"><label>User <input name="u"></label>
  <label>Password <input type="password" name="p"></label><button>Sign in</button></form>`;
const html = (body: string) => `<!doctype html><title>Sign in</title><body>${body}</body>`;
const page = (body: string) => (response: ServerResponse) => void response.end(html(body));

/** Login pages that mean harm to the service that reads them. Each gets a browser of its own, which it may bring to a stop. */
const pages: Record<string, (response: ServerResponse) => void> = {
  'with 100,000 fields': page(
    `${form}<script>document.body.insertAdjacentHTML('beforeend', '<form>' + '<input name=a>'.repeat(100000) + '</form>')</script>`,
  ),
  'whose fields move all the time': page(
    `${form}<script>setInterval(() => { for (const one of document.querySelectorAll('input,button'))
      one.style = 'position: fixed; left: ' + Math.random() * 900 + 'px; top: ' + Math.random() * 600 + 'px' }, 5)</script>`,
  ),
  'that submits itself for ever': page(`${form}<script>setTimeout(() => document.forms[0].submit(), 100)</script>`),
  'that shows dialogs without end': page(`${form}<script>setTimeout(() => { for (;;) alert('Hello') }, 200)</script>`),
  'that never finishes loading': (response) => {
    response.write(html(form));
    const more = setInterval(() => response.write(`<p>${'more '.repeat(20)}</p>`), 50);
    response.once('close', () => clearInterval(more));
  },
};

const site = createServer((request, response) => {
  request.resume();
  const { pathname } = new URL(request.url ?? '/', 'http://site');
  response.setHeader('content-type', 'text/html');
  const serve = pages[decodeURIComponent(pathname.slice(1))];
  if (serve) serve(response);
  else response.writeHead(404).end();
});
beforeAll(async () => {
  site.listen(0, '127.0.0.1');
  await once(site, 'listening');
});
afterAll(() => {
  site.closeAllConnections();
  site.close();
});

/** The maximum number of characters of a page that a login may store and show. */
const mostStored = 1_000_000;

test.each(Object.keys(pages))('a login at a page %s ends with a reason', { timeout: 300_000 }, async (name) => {
  const server = await muxServer();
  const forms = openForms(server.mux);
  const reports: FlowState[] = [];
  const notes: Explained[] = [];
  try {
    const loginUrl = `http://127.0.0.1:${portOf(site)}/${encodeURIComponent(name)}`;
    const outcome = await runWith(read, {
      connection: { id: 'con_1', domain: '127.0.0.1', loginUrl, allowedDomains: [] },
      flowType: 'LOGIN',
      browser: forms,
      credential: async () => ({ values: { username: 'ann', password: 'planted-password' } }),
      totp: async () => undefined,
      mayEnrol: false,
      report: async (state) => void reports.push(state),
      input: ({ signal }) =>
        new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error))),
      record: (note) => void notes.push(note),
      signal: new AbortController().signal,
      // So that a page that cannot be read costs the test few seconds.
      deadlines: { total: 60_000, page: 2000, input: 1000, external: 1000, patience: 50, coming: 1000 },
    });
    expect(outcome.cause).toBeUndefined();
    expect(['FAILED', 'EXPIRED']).toContain(outcome.status);
    expect(outcome.errorMessage).toMatch(/^[A-Z].+\.$/);
    const stored = JSON.stringify([outcome, reports, notes]);
    expect(stored.length).toBeLessThan(mostStored);
    expect(stored).not.toContain('planted-password');
  } finally {
    forms.dispose();
    await server.stop();
  }
});

import type Kernel from '@onkernel/sdk';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { requireSandbox } from '../support/sandbox.ts';
import { expectNothingLeft } from '../support/nothing-left.ts';
import { startService, type Service } from '../support/service.ts';
import { STOP_BROWSER } from '../support/stop-browser.ts';

await requireSandbox();

/** Nothing that is asked of a stopped browser takes longer than this. The longest deadline of the service is a third of it, which leaves a busy machine its time. */
const PATIENCE_MS = 120_000;

describe.concurrent('a browser that was stopped from inside', () => {
  let service: Service;
  let sdk: Kernel;

  beforeAll(async () => {
    service = await startService();
    sdk = service.sdk();
  });
  afterAll(async () => {
    if (service) await expectNothingLeft(service);
    await service?.close();
  });

  async function stopped(timeoutSeconds: number) {
    const session = await sdk.browsers.create({ headless: true, timeout_seconds: timeoutSeconds });
    const { session_id: id } = session;
    const result = await sdk.browsers.process.exec(id, { command: 'sh', args: ['-c', STOP_BROWSER] });
    expect(Buffer.from(result.stdout_b64!, 'base64').toString()).toContain('stopped');
    return session;
  }

  /** The status of the answer; a call without one makes the test fail with its name. */
  async function answered(what: string, method: string, path: string, body?: object): Promise<[string, number]> {
    const response = await fetch(service.url + path, {
      method,
      headers: { authorization: `Bearer ${service.key}`, ...(body && { 'content-type': 'application/json' }) },
      signal: AbortSignal.timeout(PATIENCE_MS),
      ...(body && { body: JSON.stringify(body) }),
    }).catch(() => undefined);
    if (!response) return [`${what}: no answer within ${PATIENCE_MS / 1000} s`, 0];
    const text = await response.text();
    if (response.status >= 500) expect(JSON.parse(text), what).toMatchObject({ message: expect.stringMatching(/\.$/) });
    return [what, response.status];
  }

  /** How the service closes a websocket that its client does not close. */
  function closing(url: string): Promise<{ code: number; reason: string }> {
    const socket = new WebSocket(url);
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => {
        socket.terminate();
        reject(new Error(`It was not closed within ${PATIENCE_MS / 1000} s.`));
      }, PATIENCE_MS);
      socket.on('error', reject);
      socket.on('close', (code, reason) => {
        clearTimeout(late);
        resolve({ code, reason: reason.toString() });
      });
    });
  }

  test('does not keep a call waiting, nor its session alive', { timeout: 3 * PATIENCE_MS }, async ({ expect }) => {
    const { session_id: id } = await stopped(10);
    const computer = `/browsers/${id}/computer`;
    const calls = await Promise.all([
      answered('a screenshot', 'POST', `${computer}/screenshot`, {}),
      answered('a click', 'POST', `${computer}/click_mouse`, { x: 1, y: 1 }),
      answered('a text', 'POST', `${computer}/type`, { text: 'a' }),
      answered('reading the clipboard', 'POST', `${computer}/clipboard/read`, {}),
      answered('writing the clipboard', 'POST', `${computer}/clipboard/write`, { text: 'a' }),
      answered('a request', 'POST', `/browsers/${id}/curl`, { url: 'http://example.test/', timeout_ms: 5000 }),
      answered('the viewport', 'PATCH', `/browsers/${id}`, { viewport: { width: 800, height: 600 } }),
      answered('a recording', 'POST', `/browsers/${id}/replays`, {}),
      answered('code beside it', 'POST', `/browsers/${id}/playwright/execute`, {
        code: 'return page.title()',
        timeout_sec: 5,
      }),
    ]);
    for (const [what, status] of calls) expect(status, what).toBeGreaterThan(0);
    const refused = calls.filter(([, status]) => status === 504).map(([what]) => what);
    expect(refused).toEqual(expect.arrayContaining(['a screenshot', 'reading the clipboard', 'the viewport']));

    const until = Date.now() + PATIENCE_MS;
    let ended = false;
    while (!ended && Date.now() < until) {
      ended = (await service.call('GET', `/browsers/${id}`)).status === 404;
      if (!ended) await new Promise((resolve) => setTimeout(resolve, 250));
    }
    expect(ended, 'its idle timeout of 10 s has ended it').toBe(true);
  });

  test(
    'is let go by its sockets with a sentence, and deleted at once',
    { timeout: 3 * PATIENCE_MS },
    async ({ expect }) => {
      const { session_id: id, cdp_ws_url, browser_live_view_url } = await stopped(600);
      const live = browser_live_view_url!
        .replace(/^http/, 'ws')
        .replace('/live?', '/live/socket?')
        .replace('/live/?', '/live/socket?');
      for (const { code, reason } of await Promise.all([closing(cdp_ws_url), closing(live)])) {
        expect(code).toBe(1011);
        expect(reason).toContain('did not answer');
      }
      expect(await answered('deleting it', 'DELETE', `/browsers/${id}`)).toEqual(['deleting it', 204]);
    },
  );
});

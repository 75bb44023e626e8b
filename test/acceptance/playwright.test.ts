import type Kernel from '@onkernel/sdk';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectNothingLeft } from '../support/nothing-left.ts';
import { startPages, type Pages } from '../support/pages.ts';
import { startService, type Service } from '../support/service.ts';
import { isolationHere } from '../support/sandbox.ts';

const isolation = await isolationHere();

describe.runIf(isolation.sandboxed)('Playwright beside the browser', () => {
  let pages: Pages;
  let service: Service;
  let sdk: Kernel;
  const sessions = { headless: '', headful: '' };

  beforeAll(async () => {
    pages = await startPages({
      '/hello': '<title>Hello</title><button onclick="document.title = \'Clicked\'">Go</button>',
    });
    service = await startService({ CORRAL_ALLOW_PRIVATE_HOSTS: pages.host });
    sdk = service.sdk();
    for (const shape of ['headless', 'headful'] as const)
      sessions[shape] = (
        await sdk.browsers.create({ headless: shape === 'headless', timeout_seconds: 600 })
      ).session_id;
  });
  afterAll(async () => {
    if (service) await expectNothingLeft(service);
    await service?.close();
    await pages?.close();
  });

  const run = (code: string, shape: keyof typeof sessions = 'headless', timeout_sec = 30) =>
    sdk.browsers.playwright.execute(sessions[shape], { code, timeout_sec });

  test.each(['headless', 'headful'] as const)('TypeScript drives the page of a %s session', async (shape) => {
    const answer = await run(
      `const title: string = await (async () => {
         await page.goto('${pages.url}hello');
         await page.getByRole('button').click();
         return page.title();
       })();
       enum Colour { Red = 7 }
       console.log('seen', title);
       console.error('and heard');
       return { title, colour: Colour.Red, same: context === page.context() && browser === context.browser() };`,
      shape,
    );
    expect(answer).toEqual({
      success: true,
      result: { title: 'Clicked', colour: 7, same: true },
      stdout: 'seen Clicked\n',
      stderr: 'and heard\n',
    });
    // The page is as it was left, and so is the process.
    await run(`globalThis.kept = 'still here'`, shape);
    expect(await run('return [page.url(), globalThis.kept]', shape)).toMatchObject({
      result: [`${pages.url}hello`, 'still here'],
    });
  });

  test('an exception of the code is returned, and affects no other code', async () => {
    expect(await run(`throw new Error('mine')`)).toMatchObject({
      success: false,
      error: 'mine',
      stderr: expect.stringMatching(/Error: mine\n\s+at .*code\.ts:1/),
    });
    expect(await run('this is not code')).toMatchObject({
      success: false,
      error: expect.stringContaining('cannot be read'),
    });
    expect(await run('const a = {}; a.a = a; return a')).toMatchObject({
      success: false,
      error: expect.stringContaining('JSON'),
    });
    expect(await run('return "x".repeat(9e6)')).toMatchObject({
      success: false,
      error: expect.stringContaining('bytes'),
    });
    expect(await run('')).toEqual({ success: true, result: null });
    expect(await run(`await page.locator('#none').click({ timeout: 100 })`)).toMatchObject({ success: false });
  });

  test.each([
    ['ends its process', 'console.log("so far"); process.exit(3)', /exit code 3/],
    ['never ends', 'console.log("so far"); for (;;);', /did not end within 4 s/],
    ['waits for ever', 'console.log("so far"); await new Promise(() => {})', /did not end within 4 s/],
    [
      'is killed',
      'console.log("so far"); process.kill(process.pid, "SIGKILL"); await new Promise(() => {})',
      /SIGKILL/,
    ],
    [
      'throws from nowhere',
      'console.log("so far"); setTimeout(() => { throw new Error("late") }); await new Promise(() => {})',
      /exit code 1/,
    ],
  ])('code that %s hurts neither the session nor the next call', async (_what, code, error) => {
    expect(await run(code, 'headless', 4)).toMatchObject({
      success: false,
      error: expect.stringMatching(error),
      stdout: 'so far\n',
    });
    expect(await run('return page.url()')).toMatchObject({ success: true, result: `${pages.url}hello` });
  });

  test('code that closes the browser closes its connection, and the next call has another', async () => {
    expect(await run('await browser.close(); return 1')).toMatchObject({ success: true, result: 1 });
    expect(await run('return page.url()')).toMatchObject({ success: true, result: `${pages.url}hello` });
  });

  test('two at once take turns', async () => {
    const answers = await Promise.all(
      [1, 2, 3].map((n) =>
        run(
          `globalThis.inside = (globalThis.inside ?? 0) + 1; await page.waitForTimeout(50); return [${n}, globalThis.inside--]`,
        ),
      ),
    );
    expect(answers.map(({ result }) => result)).toEqual([
      [1, 1],
      [2, 1],
      [3, 1],
    ]);
  });

  test('the active tab is the last tab that was brought to the front', async () => {
    await run(
      `const other = await context.newPage(); await other.goto('${pages.url}'); await other.bringToFront()`,
      'headful',
    );
    expect(await run('return page.url()', 'headful')).toMatchObject({ result: pages.url });
    await run(`await context.pages()[0].bringToFront()`, 'headful');
    expect(await run('return page.url()', 'headful')).toMatchObject({ result: `${pages.url}hello` });
  });

  test('more output than is kept is said to be missing', async () => {
    const { stdout } = await run(`for (let n = 0; n < 2000; n++) console.log('x'.repeat(1000))`);
    expect(stdout!.length).toBeLessThan(1_100_000);
    expect(stdout).toMatch(/bytes more were dropped\]\n$/);
  });

  test('a client that hangs up stops the code', async () => {
    const hangUp = new AbortController();
    const call = fetch(`${service.url}/browsers/${sessions.headless}/playwright/execute`, {
      method: 'POST',
      signal: hangUp.signal,
      headers: { authorization: `Bearer ${service.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        code: `await page.goto('${pages.url}?started'); for (;;) await page.waitForTimeout(10)`,
      }),
    }).catch(() => {});
    const url = async () => {
      const { stdout_b64 } = await sdk.browsers.process.exec(sessions.headless, {
        command: 'pgrep',
        args: ['-f', 'runner.js'],
      });
      return Buffer.from(stdout_b64!, 'base64').toString().trim();
    };
    const held = await service.app.sessions.hold(sessions.headless);
    const targets = async () => JSON.stringify(await held.engine.control().send('Target.getTargets'));
    await expect.poll(targets).toContain('?started');
    const before = await url();
    hangUp.abort();
    await call;
    await expect.poll(url).not.toBe(before);
    held.release();
    expect(await run('return 1')).toMatchObject({ success: true });
  });
});

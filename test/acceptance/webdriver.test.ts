import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { killBrowser } from '../support/kill-browser.ts';
import { expectNothingLeft } from '../support/nothing-left.ts';
import { startPages, type Pages } from '../support/pages.ts';
import { startService, type Answer, type Service } from '../support/service.ts';

/** Drivers and browsers start and end in a moment, and the machine may be busy. */
const patience = { timeout: 60_000 };
const root = join(import.meta.dirname, '../..');

let pages: Pages;
let service: Service;

beforeAll(async () => {
  pages = await startPages();
  service = await startService({ CORRAL_ALLOW_PRIVATE_HOSTS: pages.host });
});
afterAll(async () => {
  await service?.close();
  await pages?.close();
});

// oxlint-disable-next-line typescript/no-explicit-any -- the client has no types of its own
const untyped = (name: string): Promise<any> => import(name);

/** As clients write it: the key is in the address. */
const address = (path = '') => service.url.replace('//', `//corral:${service.key}@`) + path;

/** A request without a key in a header. */
async function bare(method: string, path: string, body?: unknown): Promise<Answer> {
  const response = await fetch(service.url + path, { method, ...(body ? { body: JSON.stringify(body) } : {}) });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, body: JSON.parse(text) };
}

const asking = (options: object, more: object = {}) => ({
  capabilities: { alwaysMatch: { 'corral:options': { headless: true, ...options }, ...more } },
});

const ago = (ms: number) => new Date(Date.now() - ms).toISOString();

const inSession = async (id: string, command: string, args: string[]) => {
  const { body } = await service.call('POST', `/browsers/${id}/process/exec`, { command, args });
  return Buffer.from(body.stdout_b64, 'base64').toString();
};

// The driver is an optional part of the system.
describe.skipIf(!process.env['CI'] && !existsSync('/usr/bin/chromedriver'))('a classic WebDriver client', () => {
  test('selenium-webdriver drives a session from its beginning to its end', async () => {
    const { Browser, Builder, By, Key, until } = await untyped('selenium-webdriver');
    const { Options } = await untyped('selenium-webdriver/chrome.js');
    const options = new Options().addArguments('--headless', '--window-size=1000,700', '--no-sandbox');
    options.set('corral:options', { tags: { team: 'selenium' }, timeout_seconds: 600 });
    options.set('webSocketUrl', true);
    options.set('unhandledPromptBehavior', 'ignore');
    const driver = await new Builder()
      .usingServer(address('/wd/hub'))
      .forBrowser(Browser.CHROME)
      .setChromeOptions(options)
      .build();
    const session = await driver.getSession();
    const id: string = session.getId();
    try {
      const { body } = await service.call('GET', `/browsers/${id}`);
      expect(body).toMatchObject({ headless: true, tags: { team: 'selenium' }, timeout_seconds: 600 });
      expect(body.viewport).toMatchObject({ width: 1000, height: 700 });

      await driver.get(pages.url);
      expect(await driver.getTitle()).toBe('A page');
      await driver.findElement(By.css('button')).click();
      expect(await driver.findElement(By.css('#output')).getText()).toBe('1');
      const input = driver.findElement(By.css('#input'));
      await input.sendKeys('word', Key.TAB);
      expect(await input.getAttribute('value')).toBe('word');
      expect(await driver.executeScript('return [innerWidth, arguments[0]]', 'x')).toEqual([1000, 'x']);
      expect(Buffer.from(await driver.takeScreenshot(), 'base64').toString('latin1', 1, 4)).toBe('PNG');
      await driver.switchTo().newWindow('tab');
      expect(await driver.getAllWindowHandles()).toHaveLength(2);
      const { FileDetector } = await untyped('selenium-webdriver/remote/index.js');
      driver.setFileDetector(new FileDetector());
      await driver.get('data:text/html,<input type=file>');
      await driver.findElement(By.css('input')).sendKeys(join(root, 'LICENSE'));
      const sent = await driver.executeScript('return document.querySelector("input").files[0].text()');
      expect(sent).toBe(await readFile(join(root, 'LICENSE'), 'utf8'));

      await expect(driver.findElement(By.css('#none'))).rejects.toThrow('no such element');

      const capabilities = session.getCapabilities();
      expect(capabilities.get('browserName')).toBe('chrome');
      expect(capabilities.get('corral:options')).toMatchObject({ session_id: id });
      expect(JSON.stringify([...capabilities.keys()])).not.toContain('debuggerAddress');
      const cdp = await driver.createCDPConnection('page');
      expect(await cdp.send('Runtime.evaluate', { expression: '6 * 7' })).toMatchObject({
        result: { result: { value: 42 } },
      });

      const bidi = await driver.getBidi();
      const tree = await bidi.send({ method: 'browsingContext.getTree', params: {} });
      expect(tree.result.contexts).toHaveLength(2);
      await driver.executeScript(`setTimeout(() => { document.title = 'answered ' + confirm('Go on?') })`);
      await driver.wait(until.alertIsPresent(), 60_000); // BiDi leaves it alone, as was asked for
      await driver.switchTo().alert().accept();
      await expect.poll(() => driver.getTitle()).toBe('answered true');
      bidi.close();

      // Its ports are on the session's own loopback device, and no page gets there.
      const table = await inSession(id, 'cat', ['/proc/net/tcp']);
      const ports = [...table.matchAll(/ 0100007F:([0-9A-F]{4}) 00000000:0000 0A /g)].map(([, hex]) =>
        parseInt(hex!, 16),
      );
      expect(ports.length).toBeGreaterThanOrEqual(2); // the driver's, and that of what it takes for Chromium
      for (const port of ports)
        for (const path of ['status', 'json/version']) {
          await driver.get(`http://127.0.0.1:${port}/${path}`).catch(() => {});
          expect(await driver.getPageSource()).not.toMatch(/ChromeDriver ready|webSocketDebuggerUrl/);
        }
    } finally {
      await driver.quit();
    }
    expect((await service.call('GET', `/browsers/${id}`)).status).toBe(404);
    await expectNothingLeft(service);
  });

  test('the example of the guide works', async () => {
    const guide = await readFile(join(root, 'docs/from-selenium.md'), 'utf8');
    const [, code = ''] = /```js\n([\s\S]*?)```/.exec(guide) ?? [];
    const text = code
      .replace('http://corral:YOUR_KEY@127.0.0.1:3000', address())
      .replace('https://example.com', pages.url);
    const cwd = await mkdtemp(join(tmpdir(), 'corral-guide-'));
    try {
      await symlink(join(root, 'node_modules'), join(cwd, 'node_modules'));
      await writeFile(join(cwd, 'guide.mjs'), text);
      const child = spawn(process.execPath, ['guide.mjs'], { cwd, stdio: ['ignore', 'pipe', 'inherit'] });
      let printed = '';
      child.stdout.on('data', (bytes: Buffer) => (printed += bytes.toString()));
      expect(await once(child, 'close')).toEqual([0, null]);
      expect(printed).toContain('A page count');
    } finally {
      await rm(cwd, { recursive: true, force: true });
    }
  });

  test('a key in the capabilities is enough; a crash of the driver is reported', async () => {
    const { status, body } = await bare('POST', '/session', asking({ apiKey: service.key }));
    expect(status, JSON.stringify(body)).toBe(200);
    const { sessionId } = body.value;
    const id = body.value.capabilities['corral:options'].session_id as string;
    expect(sessionId.startsWith(`${id}.`)).toBe(true);
    const at = `/session/${sessionId}`;
    expect((await bare('POST', `${at}/url`, { url: pages.url })).body).toEqual({ value: null });
    expect((await bare('GET', `${at}/title`)).body).toEqual({ value: 'A page' });
    // The token is for this session, and the id alone is none.
    expect((await bare('GET', `/session/${id}/title`)).status).toBe(401);
    expect(
      (await bare('GET', `/session/aaaaaaaaaaaaaaaaaaaaaaaa.${sessionId.split('.').slice(1).join('.')}/title`)).status,
    ).toBe(403);

    await inSession(id, 'sh', ['-c', 'kill -9 $(pidof chromedriver)']);
    await vi.waitFor(async () => {
      const { status, body } = await bare('GET', `${at}/title`);
      expect({ status, error: body.value.error }).toEqual({ status: 404, error: 'invalid session id' });
    }, patience);
    expect((await service.call('GET', `/browsers/${id}`)).status).toBe(200);
    expect((await bare('DELETE', at)).body).toEqual({ value: null });
    expect((await bare('DELETE', at)).body.value.error).toBe('invalid session id');
    const { text } = await service.call('GET', `/audit-logs?start=${ago(3_600_000)}&end=${ago(-60_000)}&limit=100`);
    expect(text).toContain(`/session/${id}`);
    expect(text).not.toContain(sessionId);
    expect(service.log.join('')).not.toContain(sessionId.split('.').at(-1));
  });

  test('the driver ends when the browser crashes or the session is deleted', async () => {
    const { body } = await service.call('POST', '/session', asking({}));
    const id = body.value.sessionId as string;
    await killBrowser(service, id);
    await vi.waitFor(async () => {
      const { body } = await service.call('GET', `/session/${id}/title`);
      expect(body.value.error).toBe('invalid session id');
    }, patience);
    expect((await service.call('DELETE', `/browsers/${id}`)).status).toBe(204);
    const after = await service.call('GET', `/session/${id}/title`);
    expect(after.status).toBe(404);
    expect(after.body.value).toMatchObject({ error: 'invalid session id', data: { code: 'session_not_found' } });
    await expectNothingLeft(service);
  });

  test('with its last window a session ends, and with a client that hangs up before it has one', async () => {
    const { body } = await service.call('POST', '/session', asking({}));
    const id = body.value.sessionId as string;
    expect((await service.call('DELETE', `/session/${id}/window`)).body).toEqual({ value: [] });
    expect((await service.call('GET', `/browsers/${id}`)).status).toBe(404);

    const count = async () => ((await service.call('GET', '/browsers')).body as unknown[]).length;
    let reason: string | undefined;
    // A request may be answered in the very moment in which its client leaves: then its session ends by its timeout, and another client tries.
    for (let tries = 0; tries < 3 && reason !== 'deleted'; tries++) {
      const leaving = new AbortController();
      const request = fetch(`${service.url}/session`, {
        method: 'POST',
        headers: { authorization: `Bearer ${service.key}` },
        body: JSON.stringify(asking({ timeout_seconds: 10 })),
        signal: leaving.signal,
      }).catch(() => {});
      await vi.waitFor(async () => expect(await count()).toBe(1), patience);
      leaving.abort();
      await request;
      await vi.waitFor(async () => expect(await count()).toBe(0), patience);
      reason = (await service.call('GET', '/browsers?status=deleted&limit=1')).body[0].ended_reason;
    }
    expect(reason).toBe('deleted');
    await expectNothingLeft(service);
  });
});

test('refusals have the shape of WebDriver', async () => {
  const refused = async (body: unknown, headers = {}) => {
    const answer = await service.call('POST', '/wd/hub/session', body, headers);
    const { error, message, stacktrace } = answer.body.value;
    expect(stacktrace).toBe('');
    return `${answer.status} ${error}: ${message}`;
  };
  expect(await refused({})).toMatch(/^400 invalid argument: 'capabilities' is missing/);
  expect(await refused('no json')).toMatch(/^400 invalid argument: The body is not JSON/);
  expect(await refused(asking({ timeout_seconds: 1 }))).toBe(
    '400 invalid argument: corral:options: timeout_seconds must be at least 10.',
  );
  expect(await refused(asking({ heedless: true }))).toContain('Did you mean headless?');
  expect(await refused(asking({}, { browserName: 'firefox' }))).toMatch(/^500 session not created: The browser here/);
  expect(await refused(asking({}), { authorization: 'Bearer sk_no' })).toMatch(/^401 session not created/);
  expect((await bare('POST', '/session', asking({}))).body.value).toMatchObject({ error: 'session not created' });
  // A body is read before the key in it is known, so a client without a key in a header is allowed little.
  const large = asking({ apiKey: service.key, name: 'a'.repeat(1_100_000) });
  expect(await bare('POST', '/session', large)).toMatchObject({ status: 413 });
  expect(await refused(large)).toMatch(/^400 invalid argument/);
  const inChunks = new Blob(['{}']).stream();
  const sent = { method: 'POST', body: inChunks, duplex: 'half' } as RequestInit;
  expect((await fetch(`${service.url}/session`, sent)).status).toBe(413);
  expect((await service.call('GET', '/session/none/title')).body.value.error).toBe('invalid session id');
  expect((await bare('GET', '/wd/hub/status')).body.value).toHaveProperty('ready');
});

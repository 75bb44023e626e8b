import { once } from 'node:events';
import { chromium, type Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { requireSandbox } from '../support/sandbox.ts';
import { startService, type Service } from '../support/service.ts';

await requireSandbox();

const PAGE = 'data:text/html,<button style="position:fixed;inset:0" onclick="document.title=`taken over`">';
let service: Service;
let id: string;
let driver: Browser;

beforeAll(async () => {
  service = await startService();
  const session = await service.sdk().browsers.create({ headless: true, timeout_seconds: 600 });
  id = session.session_id;
  driver = await chromium.connectOverCDP(session.cdp_ws_url);
  await page().goto(PAGE);
});
afterAll(async () => {
  await driver?.close();
  await service?.close();
});

const page = () => driver.contexts()[0]!.pages()[0]!;

async function link(body: object = {}) {
  const answer = await service.call('POST', `/browsers/${id}/live_view_links`, body);
  expect(answer.status).toBe(200);
  return answer.body as { url: string; read_only: boolean; expires_at: string };
}

/** The websocket behind a live view's address, as a viewer writes it who wants more than the link allows. */
async function clickThrough(address: string) {
  const url = new URL(address);
  const socket = new WebSocket(`ws://${url.host}/browser/live/socket?${url.searchParams.toString()}`);
  const messages: { type?: string; readOnly?: boolean }[] = [];
  const drawn = new Promise<void>((resolve) => {
    socket.on('message', (data: Buffer, binary) => {
      if (binary) return;
      messages.push(JSON.parse(String(data)) as object);
      if (messages.at(-1)!.type === 'viewport') resolve(); // there is a page to click: what comes before is not passed on
    });
  });
  await once(socket, 'open');
  await drawn;
  for (const event of ['down', 'up']) {
    const mouse = { x: 50, y: 50, button: 'left', buttons: event === 'down' ? 1 : 0, clickCount: 1, modifiers: 0 };
    socket.send(JSON.stringify({ type: 'mouse', event, ...mouse }));
  }
  const closed = once(socket, 'close');
  socket.close();
  await closed;
  return messages.find(({ type }) => type === 'hello')!.readOnly;
}

test('a read-only link stays read-only with any parameters', async () => {
  const { url, read_only } = await link();
  expect(read_only).toBe(true);
  const variants = ['', '&readOnly=false', '&readOnly=0', '&read_only=false', '&readOnly='].map((more) => url + more);
  for (const address of variants) {
    expect(await clickThrough(address)).toBe(true);
    const shown = await fetch(address);
    if (shown.status === 200) expect(await shown.text()).toContain('data-read-only="true"');
  }
  await page().evaluate(() => 1); // the clicks have been handled
  expect(await page().title()).not.toBe('taken over');
});

test('its token opens nothing else, and cannot be rewritten', async () => {
  const { url } = await link();
  const jwt = new URL(url).searchParams.get('jwt')!;
  const [head, payload, signature] = jwt.split('.') as [string, string, string];
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as object;
  const forged = Buffer.from(JSON.stringify({ ...claims, watch_only: false })).toString('base64url');
  const status = async (path: string) => (await fetch(`${service.url}${path}`)).status;
  expect(await status(`/browser/live?jwt=${head}.${forged}.${signature}`)).toBe(401);
  expect(await status(`/browser/kernel/${jwt}/json/version`)).toBe(403);
  expect(await status(`/browser/replays?jwt=${jwt}&replay_id=x`)).toBe(403);
});

test('a link ends when it says, and not later than its session', async () => {
  const { url, expires_at } = await link({ expires_in_seconds: 1 });
  expect(Date.parse(expires_at) - Date.now()).toBeLessThanOrEqual(1000);
  await expect.poll(async () => (await fetch(url)).status, { timeout: 60_000 }).toBe(401);
  for (const expires_in_seconds of [0, -1, 72 * 3600 + 1, 1e12])
    expect((await service.call('POST', `/browsers/${id}/live_view_links`, { expires_in_seconds })).status).toBe(400);
});

test('a key makes no links to another project’s sessions', async () => {
  const other = await service.sdk().projects.create({ name: 'Other' });
  const { key } = await service.sdk().apiKeys.create({ name: 'other', project_id: other.id });
  const answer = await service.call('POST', `/browsers/${id}/live_view_links`, {}, { authorization: `Bearer ${key}` });
  expect(answer.status).toBe(404);
});

test('the session’s own link controls it, watches with readOnly, and one may be made that controls', async () => {
  const { browser_live_view_url: own } = await service.sdk().browsers.retrieve(id);
  expect(await clickThrough(`${own}&readOnly=true`)).toBe(true);
  await page().evaluate(() => 1);
  expect(await page().title()).not.toBe('taken over');
  const { url } = await link({ read_only: false });
  expect(await clickThrough(url)).toBe(false);
  await expect.poll(() => page().title(), { timeout: 60_000 }).toBe('taken over');
  expect(await clickThrough(own!)).toBe(false);
});

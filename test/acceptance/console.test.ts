import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { linkAddress } from '../../src/console/links.ts';
import { openBrowser, openTab, signIn } from '../support/console.ts';
import { RawClient } from '../support/mux-server.ts';
import { startService, type Service } from '../support/service.ts';

let service: Service;
let person: Browser;
beforeAll(async () => {
  service = await startService();
  person = await openBrowser();
});
afterAll(async () => {
  await person?.close();
  await service?.close();
});

test('a browser gets the console where a program gets JSON, under a policy without inline code', async () => {
  const html = { accept: 'text/html,application/xhtml+xml' };
  const front = await fetch(service.url, { headers: html });
  expect(front.status).toBe(200);
  expect(front.headers.get('content-type')).toContain('text/html');
  const policy = front.headers.get('content-security-policy') ?? '';
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy).not.toContain('unsafe');
  const text = await front.text();
  expect(text).not.toMatch(/<script(?![^>]*\ssrc="\/console\/assets\/)/);
  const assets = [...text.matchAll(/(?:src|href)="(\/[^"]+)"/g)].map(([, path]) => path!);
  expect(assets.length).toBeGreaterThan(1);
  for (const path of assets) {
    const asset = await fetch(service.url + path, { headers: { 'accept-encoding': 'br' } });
    expect(asset.status).toBe(200);
    expect(asset.headers.get('content-encoding')).toBe('br');
    expect(asset.headers.get('cache-control')).toContain('immutable');
    await asset.arrayBuffer();
  }
  expect((await fetch(`${service.url}/console/sessions/any`, { headers: html })).status).toBe(200);
  expect((await service.call('GET', '/')).body.code).toBe('not_found');
  expect((await fetch(service.url)).status).toBe(401);
  for (const path of ['/console/assets/none.js', '/console/assets/..%2f..%2f..%2fpackage.json'])
    expect((await service.call('GET', path)).body.code).toBe('not_found');
});

test('a wrong key shows the sentence of the service, and a link signs in once', async () => {
  const { page, complaints, context } = await openTab(person, service.url);
  await signIn(page, 'sk_wrong');
  const alert = page.getByRole('alert');
  await alert.waitFor();
  expect(await alert.innerText()).toMatch(/This key is not known here, or was revoked\.[\s\S]*request req_/);
  expect(complaints.filter((line) => !line.includes('401'))).toEqual([]);
  await context.close();

  const link = linkAddress(service.url, await service.app.links.create());
  const first = await openTab(person, link);
  await first.page.getByRole('heading', { name: 'Overview' }).waitFor();
  expect(first.page.url()).not.toContain('code');
  await first.page.getByRole('button', { name: 'Sign out' }).click();
  await first.page.getByRole('textbox', { name: 'API key' }).waitFor();
  await first.context.close();
  const keys = await service.call('GET', '/org/api_keys?query=console&include_deleted=true');
  expect(keys.body[0].deleted_at).not.toBeNull();

  const second = await openTab(person, link);
  await second.page.getByText('This link was used already').waitFor();
  await second.context.close();
});

test('a person signs in, finds a session, watches it and ends it', async () => {
  const start_url = `data:text/html,<title>${encodeURIComponent('&lt;b&gt;bold&lt;/b&gt;')}</title>`;
  const { status, body } = await service.call('POST', '/browsers', {
    headless: true,
    name: 'checkout',
    tags: { team: 'a' },
    start_url,
  });
  expect(status).toBe(200);
  const client = await RawClient.open(body.cdp_ws_url); // a session that sleeps before the first look has no picture
  const { page, complaints, context } = await openTab(person, `${service.url}/console/sessions`);
  await signIn(page, service.key);
  await page.getByLabel('Tags').fill('team=a');
  await page.getByText('Wall', { exact: true }).click();
  await page.getByRole('img', { name: 'What checkout shows' }).waitFor();
  await page.getByRole('link', { name: 'checkout' }).click();
  await page.getByRole('heading', { name: 'checkout' }).waitFor();
  expect(page.url()).toContain(`/console/sessions/${body.session_id}`);

  const view = page.frameLocator('iframe.live-view');
  await view.locator('html[data-state="connected"]').waitFor({ state: 'attached' });
  await view.getByText('Read only').waitFor();
  await page.locator('dl').getByText('<b>bold</b>', { exact: true }).waitFor(); // the title is shown as text, not as markup

  await page.getByRole('button', { name: 'End session' }).click();
  const question = page.getByRole('dialog');
  await question.getByText('every client is disconnected').waitFor();
  await question.getByRole('button', { name: 'End session' }).click();
  await page.getByText('This session has ended').waitFor();
  await client.closed;
  expect((await service.call('GET', `/browsers/${body.session_id}`)).status).toBe(404);
  expect(complaints).toEqual([]);
  await context.close();
});

interface StreamEvent {
  id: number;
  type: string;
  resource_id?: string;
  data: Record<string, unknown>;
}

/** A stream of events as a program reads it. */
async function follow(key: string, lastEventId?: number) {
  const headers = {
    authorization: `Bearer ${key}`,
    ...(lastEventId !== undefined && { 'last-event-id': String(lastEventId) }),
  };
  const response = await fetch(`${service.url}/events`, { headers });
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe('text/event-stream');
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  const next = async (): Promise<StreamEvent | undefined> => {
    for (;;) {
      const [block, ...more] = rest.split('\n\n');
      if (more.length > 0) {
        rest = more.join('\n\n');
        const data = block!.split('\n').find((line) => line.startsWith('data: '));
        if (data) return JSON.parse(data.slice(6)) as StreamEvent;
        continue;
      }
      const { done, value } = await reader.read();
      if (done) return undefined;
      rest += value;
    }
  };
  return { next, close: () => reader.cancel() };
}

test('a program follows changes in its project, resumes at its last event, and is disconnected with its key', async () => {
  const project = (await service.call('POST', '/org/projects', { name: 'followed' })).body;
  const { body: made } = await service.call('POST', '/org/api_keys', { name: 'reader', project_id: project.id });
  const there = { 'x-kernel-project-id': project.id };
  const first = await follow(made.key);
  expect(await first.next()).toMatchObject({ type: 'stream.opened' });
  await service.call('POST', '/profiles', { name: 'of-another-project' });
  const { body: profile } = await service.call('POST', '/profiles', { name: 'seen' }, there);
  const seen = await first.next();
  expect(seen).toMatchObject({ type: 'profile.created', resource_id: profile.id, data: { name: 'seen' } });
  await first.close();

  await service.call('DELETE', `/profiles/${profile.id}`, undefined, there);
  const again = await follow(made.key, seen!.id);
  expect(await again.next()).toMatchObject({ type: 'stream.opened', id: seen!.id });
  expect(await again.next()).toMatchObject({ type: 'profile.deleted', resource_id: profile.id });
  await service.call('DELETE', `/org/api_keys/${made.id}`);
  let last: StreamEvent | undefined;
  for (let event; (event = await again.next());) last = event;
  expect([undefined, 'api_key.deleted']).toContain(last?.type); // the stream may end before this event
  expect((await service.call('GET', '/events', undefined, { 'last-event-id': 'x' })).body.code).toBe('invalid_input');
});

test('a screen shows changes by events, and by polling where events are refused', async () => {
  for (const refused of [false, true]) {
    const { page, context } = await openTab(person, `${service.url}/console/profiles`);
    if (refused) await page.route('**/events', (route) => route.fulfill({ status: 404, json: { code: 'not_found' } }));
    const answered = page.waitForResponse((response) => new URL(response.url()).pathname === '/events');
    await signIn(page, service.key);
    expect((await answered).status()).toBe(refused ? 404 : 200);
    await page.getByRole('heading', { name: 'Profiles' }).waitFor();
    const name = refused ? 'found-by-asking' : 'found-by-events';
    await service.call('POST', '/profiles', { name });
    await page.getByText(name, { exact: true }).waitFor();
    await context.close();
  }
});

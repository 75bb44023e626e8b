import type Kernel from '@onkernel/sdk';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { viewing } from '../support/live-view-page.ts';
import { person, startTwoFactorSite, type TwoFactorSite } from '../support/logins/two-factor-site.ts';
import { startService, type Service } from '../support/service.ts';

/** The narrowest phones there are. */
const phone = { viewport: { width: 360, height: 740 } };

/** A login starts a browser and waits for a site: on a busy machine each step takes its time. */
function until<T>(what: () => T) {
  return expect.poll(what, { timeout: 60_000 });
}
const timeout = 240_000;

let site: TwoFactorSite;
let service: Service;
let sdk: Kernel;
const { newContext } = viewing();

beforeAll(async () => {
  site = await startTwoFactorSite();
  service = await startService({ CORRAL_ALLOW_PRIVATE_HOSTS: site.host, CORRAL_MAX_SESSIONS: '4' });
  sdk = service.sdk();
});
afterAll(async () => {
  await service?.close();
  await site?.close();
});

async function startLogin(profile: string) {
  const { id } = await sdk.auth.connections.create({
    domain: site.host,
    profile_name: profile,
    login_url: `${site.url}/`,
  });
  return sdk.auth.connections.login(id);
}

/** The address of the page with the way back, as users make it. */
function withWayBack(hostedUrl: string, ways: Record<string, string>) {
  const url = new URL(hostedUrl);
  for (const [name, value] of Object.entries(ways)) url.searchParams.set(name, value);
  return url.href;
}

const open = async (url: string, options = {}) => {
  const page = await (await newContext(options)).newPage();
  await page.goto(url);
  return page;
};
const shows = (page: Page) => until(() => page.locator('main').innerText());
const focused = (page: Page) =>
  until(() => page.evaluate(`document.activeElement.labels?.[0]?.innerText ?? document.activeElement.innerText`));

/** Every control has a name that is read out, and nothing has to be scrolled sideways for. */
async function expectUsable(page: Page) {
  const cdp = await page.context().newCDPSession(page);
  const { nodes } = await cdp.send('Accessibility.getFullAXTree');
  const controls = nodes.filter(
    ({ ignored, role }) =>
      !ignored && ['button', 'textbox', 'link', 'combobox', 'checkbox'].includes(role?.value as string),
  );
  expect(controls.length).toBeGreaterThan(0);
  expect(controls.filter(({ name }) => !name?.value)).toEqual([]);
  expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBe(0);
  await cdp.detach();
}

describe('the hosted page', { timeout }, () => {
  test('takes a person through a wrong password and a second factor by keyboard alone, and sends them back', async () => {
    const login = await startLogin('by-keyboard');
    const page = await open(withWayBack(login.hosted_url, { success_url: `${site.url}/back?kept=1` }), phone);
    const asked: { url: string; referer: string | undefined; body: string | null }[] = [];
    page.on('request', (request) =>
      asked.push({ url: request.url(), referer: request.headers()['referer'], body: request.postData() }),
    );
    const { keyboard } = page;

    await focused(page).toBe('Username');
    await expectUsable(page);
    expect(new URL(page.url()).searchParams.has('code')).toBe(false);
    await keyboard.type(person.username);
    await keyboard.press('Tab');
    await focused(page).toBe('Password');
    await keyboard.type('close sesame');
    await keyboard.press('Enter');

    await until(() => page.getByRole('alert').innerText()).toContain('That password is not right. Try again, Ann.');
    await focused(page).toBe('Password');
    await expectUsable(page);
    expect(await page.getByLabel('Username').inputValue()).toBe(person.username);
    expect(await page.getByLabel('Password', { exact: true }).inputValue()).toBe('');
    await page.reload(); // the tab keeps its token
    await focused(page).toBe('Username');
    await keyboard.type(person.username);
    await keyboard.press('Tab');
    await keyboard.type(person.password);
    await keyboard.press('Enter');

    await focused(page).toContain('Text message to •••• 12');
    await expectUsable(page);
    await keyboard.press('Enter');

    await focused(page).toBe('Verification code');
    await expectUsable(page);
    await keyboard.type('246 810');
    await keyboard.press('Enter');

    await until(() => page.url()).toContain('/back');
    const { searchParams } = new URL(page.url());
    expect(Object.fromEntries(searchParams)).toEqual({
      kept: '1',
      profile_name: 'by-keyboard',
      domain: expect.any(String),
    });
    expect(site.posted).toEqual(['wrong password', 'right password', 'sms', 'right code']);
    await until(async () => (await sdk.auth.connections.retrieve(login.id)).status).toBe('AUTHENTICATED');

    // A password is in one request: in the body of the submit. No address and no referrer has one, or the code.
    const withPassword = asked.filter(({ body }) => body?.includes(person.password));
    expect(withPassword.map(({ url }) => new URL(url).pathname)).toEqual([`/auth/connections/${login.id}/submit`]);
    for (const { url, referer } of asked) expect(`${url} ${referer}`).not.toMatch(/sesame|246810|jwt=|code=/);
  });

  test('works once: a second person that opens the link sees that, and is not redirected', async () => {
    const login = await startLogin('once');
    const elsewhere = withWayBack(login.hosted_url, { success_url: `${site.url}/back`, error_url: `${site.url}/back` });
    const first = await open(elsewhere);
    await shows(first).toContain('Username');
    const second = await open(elsewhere, phone);
    await shows(second).toContain('This link has been used or has expired');
    await focused(second).toBe('This link has been used or has expired');
    expect(new URL(second.url()).pathname).toBe(`/auth/hosted/${login.id}`);

    await sdk.auth.connections.delete(login.id);
    await shows(first).toMatch(/This sign-in (is over|was cancelled)/);
    const late = await open(login.hosted_url);
    await shows(late).toContain('This link does not work');
  });

  test('is canceled by a button, and shows its end again when it is loaded again', async () => {
    const login = await startLogin('canceled');
    const page = await open(login.hosted_url, phone);
    await focused(page).toBe('Username');
    await shows(page).toMatch(/\b(10|9) minutes left/); // the question ends before the login
    page.once('dialog', (dialog) => void dialog.dismiss());
    await page.getByRole('button', { name: 'Cancel this sign-in' }).click();
    expect((await sdk.auth.connections.retrieve(login.id)).flow_status).toBe('IN_PROGRESS');
    page.once('dialog', (dialog) => void dialog.accept());
    await page.getByRole('button', { name: 'Cancel this sign-in' }).click();
    await shows(page).toContain('This sign-in was cancelled');
    expect((await sdk.auth.connections.retrieve(login.id)).flow_status).toBe('CANCELED');
    await page.reload();
    await shows(page).toContain('This sign-in was cancelled');
  });

  test('runs nothing but its own files, and no site may frame it', async () => {
    const { headers, text } = await service.call('GET', '/auth/hosted/ma_any?code=x', undefined, { authorization: '' });
    const csp = headers.get('content-security-policy')!;
    for (const rule of ["default-src 'none'", "script-src 'self'", "form-action 'none'", "frame-ancestors 'none'"])
      expect(csp).toContain(rule);
    expect(headers.get('referrer-policy')).toBe('no-referrer');
    expect(headers.get('cache-control')).toBe('no-store');
    expect(text).not.toMatch(/<script>|\son\w+=|style=/);
    const none = await service.call('GET', '/auth/hosted/assets/token.ts', undefined, { authorization: '' });
    expect(none.status).toBe(404);
  });
});

describe('the token that a handoff code is exchanged for', { timeout }, () => {
  const withToken = (jwt: string, method: string, path: string, body?: unknown) =>
    service.call(method, path, body, { authorization: `Bearer ${jwt}` });

  test('lets pages of any origin read and answer one login, and nothing else', async () => {
    const [login, other] = [await startLogin('embedded'), await startLogin('other')];
    const path = `/auth/connections/${login.id}`;
    const exchange = (id: string, code: unknown) =>
      service.call('POST', `/auth/connections/${id}/exchange`, { code }, { authorization: '' });
    expect((await exchange(other.id, login.handoff_code)).status).toBe(410);
    const exchanged = await exchange(login.id, login.handoff_code);
    expect(exchanged).toMatchObject({ status: 200, body: { invocation_id: expect.any(String) } });
    expect((await exchange(login.id, login.handoff_code)).status).toBe(410);
    const { jwt } = exchanged.body;

    const read = await withToken(jwt, 'GET', path);
    expect(read).toMatchObject({ status: 200, body: { id: login.id, profile_name: 'embedded' } });
    expect(read.body.hosted_url ?? null).toBeNull();
    expect(read.headers.get('access-control-allow-origin')).toBe('*');
    const preflight = await fetch(`${service.url}${path}/submit`, { method: 'OPTIONS' });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get('access-control-allow-headers')).toContain('Authorization');

    await until(async () => (await withToken(jwt, 'GET', path)).body.flow_step).toBe('AWAITING_INPUT');
    const stream = await fetch(`${service.url}${path}/events`, { headers: { authorization: `Bearer ${jwt}` } });
    const reader = stream.body!.pipeThrough(new TextDecoderStream()).getReader();
    let said = '';
    for (let part = await reader.read(); !part.done; part = await reader.read())
      if (/"interaction_id":"/.test((said += part.value))) break; // clients that embed a login send it back with what they submit
    expect(said).toContain('event: managed_auth_state\ndata: {');
    expect(said).toContain('"interaction_id":"');
    await reader.cancel();

    for (const [method, elsewhere, body] of [
      ['GET', `/auth/connections/${other.id}`],
      ['GET', `/auth/connections/${other.id}/events`],
      ['POST', `/auth/connections/${other.id}/submit`, { field_values: { x: 'y' } }],
      ['POST', `/auth/connections/${other.id}/cancel`],
      ['GET', '/auth/connections'],
      ['PATCH', path, { auto_reauth: false }],
      ['DELETE', path],
      ['POST', `${path}/login`, {}],
      ['GET', `${path}/timeline`],
      ['GET', '/credentials'],
      ['GET', '/browsers'],
    ] as const)
      expect(await withToken(jwt, method, elsewhere, body), `${method} ${elsewhere}`).toMatchObject({ status: 401 });

    await sdk.auth.connections.delete(login.id);
    expect((await withToken(jwt, 'GET', path)).status).toBe(401);
    await sdk.auth.connections.delete(other.id);
  });
});

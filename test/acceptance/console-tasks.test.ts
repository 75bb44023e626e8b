import { createServer } from 'node:http';
import { chromium, type Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { invocationStore } from '../../src/deployments/invocation-store.ts';
import { logStore } from '../../src/deployments/log-store.ts';
import { sql } from '../../src/store/sql.ts';
import { expectGoodLook, openBrowser, openTab, PATIENCE, signIn } from '../support/console.ts';
import { listenOnLoopback } from '../support/listen.ts';
import { person as ann, startTwoFactorSite, type TwoFactorSite } from '../support/logins/two-factor-site.ts';
import { startService, type Service } from '../support/service.ts';

/** The five tasks that people do most, each from the first screen on, as a person does them. */

// Each looks at several screens twice. A busy machine takes seconds for each look.
vi.setConfig({ testTimeout: 300_000 });

let service: Service;
let person: Browser;
let login: TwoFactorSite;
let site: Awaited<ReturnType<typeof listenOnLoopback>> & { url: string };

const pages: Record<string, string> = {
  '/order': `<title>Order</title><h1>Your order</h1><script>fetch('/never')</script>`,
  '/code': `<title>Enter the code</title><input aria-label="Code" style="position:fixed;inset:0;width:100%;height:100%;font-size:80px">`,
  '/welcome': `<title>Welcome</title><script>document.cookie = 'seen=1; max-age=100000'</script>`,
};

beforeAll(async () => {
  login = await startTwoFactorSite();
  const server = createServer((request, response) => {
    if (request.url === '/never') return; // no answer ever comes
    response.setHeader('content-type', 'text/html').end(pages[request.url ?? ''] ?? '');
  });
  const listening = await listenOnLoopback(server);
  site = { ...listening, url: `http://127.0.0.1:${listening.port}` };
  service = await startService({
    CORRAL_ALLOW_PRIVATE_HOSTS: `127.0.0.1:${listening.port},${login.host}`,
    CORRAL_MAX_SESSIONS: '6',
  });
  person = await openBrowser();
});
afterAll(async () => {
  await person?.close();
  await service?.close();
  await site?.close();
  await login?.close();
});

function until<T>(what: () => T) {
  return expect.poll(what, { timeout: PATIENCE });
}

async function signedIn() {
  const tab = await openTab(person, service.url);
  await signIn(tab.page, service.key);
  await tab.page.getByRole('heading', { name: 'Overview' }).waitFor();
  const room = async (name: string) => {
    await tab.page.getByRole('navigation').getByRole('link', { name, exact: true }).click();
    await tab.page.getByRole('heading', { name, exact: true, level: 1 }).waitFor();
  };
  return { ...tab, room };
}

test('find a stuck session and see why', async () => {
  const { page, room, complaints, context } = await signedIn();
  const telemetry = { browser: { network: { enabled: true }, console: { enabled: true }, page: { enabled: true } } };
  const made = [
    await service.call('POST', '/browsers', { headless: true, name: 'fine' }),
    await service.call('POST', '/browsers', {
      headless: true,
      name: 'stuck',
      start_url: `${site.url}/order`,
      telemetry,
    }),
  ];
  // The program of a stuck session is still there, so that it does not fall asleep.
  const program = await chromium.connectOverCDP(made[1]!.body.cdp_ws_url);
  await expectGoodLook(page, 'overview');
  await room('Sessions');
  await page.getByText('Wall', { exact: true }).click();
  await page.getByRole('img', { name: 'What stuck shows' }).waitFor();
  await expectGoodLook(page, 'wall');
  await page.getByText('List', { exact: true }).click();
  await page.getByLabel('Search').fill('stuck');
  await page.getByRole('link', { name: 'fine' }).waitFor({ state: 'detached' });
  await expectGoodLook(page, 'sessions');
  await page.getByRole('link', { name: 'stuck' }).click();
  await page.getByRole('tab', { name: 'Timeline' }).click();
  const why = page.getByRole('alert').filter({ hasText: 'It waits for an answer' });
  await why.getByText('/never').waitFor();
  await expectGoodLook(page, 'timeline');
  await program.close();
  for (const { body } of made) await service.call('DELETE', `/browsers/${body.session_id}`);
  await page.getByText('This session has ended').waitFor();
  expect(complaints).toEqual([]);
  await context.close();
});

test('take over, type a code, hand back', async () => {
  const { body } = await service.call('POST', '/browsers', {
    headless: true,
    name: 'asks-for-a-code',
    start_url: `${site.url}/code`,
  });
  const driver = await chromium.connectOverCDP(body.cdp_ws_url);
  const field = driver.contexts()[0]!.pages()[0]!.getByLabel('Code');
  await field.waitFor({ timeout: PATIENCE });

  const { page, room, complaints, context } = await signedIn();
  await room('Sessions');
  await page.getByRole('link', { name: 'asks-for-a-code' }).click();
  const view = page.frameLocator('iframe.live-view');
  await view.getByText('Read only').waitFor();
  await page.getByText('Take over').click();
  await view.getByText('Read only').waitFor({ state: 'hidden' });
  await view.locator('html[data-state="connected"]').waitFor({ state: 'attached' });
  await view.locator('#screen').click();
  await page.keyboard.type('246810');
  await until(() => field.inputValue()).toBe('246810');
  await expectGoodLook(page, 'take-over');
  await page.getByText('Hand back').click();
  await view.getByText('Read only').waitFor();
  expect(complaints).toEqual([]);
  await context.close();
  await driver.close();
  await service.call('DELETE', `/browsers/${body.session_id}`);
});

test('start a session with a profile and save it', async () => {
  const { page, room, complaints, context } = await signedIn();
  await room('Profiles');
  await expectGoodLook(page, 'profiles-empty');
  await page.getByRole('button', { name: 'New profile' }).click();
  await page.getByRole('dialog').getByLabel('Name').fill('regular');
  await page.getByRole('button', { name: 'Make the profile' }).click();
  await page.getByRole('row', { name: 'regular' }).getByRole('button', { name: 'Open' }).click();
  const form = page.getByRole('dialog');
  await form.getByLabel('First page').fill(`${site.url}/welcome`);
  await form.getByRole('switch', { name: 'Headless' }).click();
  await expectGoodLook(page, 'start');
  await form.getByRole('button', { name: 'Start' }).click();

  await page.getByRole('tab', { name: 'Code', exact: true }).click();
  await page.getByLabel('Playwright code').fill('return page.evaluate("document.cookie")');
  await until(async () => {
    await page.getByRole('button', { name: 'Run' }).click();
    return page.getByLabel('the result', { exact: true }).innerText();
  }).toBe('"seen=1"');
  await expectGoodLook(page, 'code');
  await page.getByRole('button', { name: 'End session' }).click();
  const question = page.getByRole('dialog');
  await question.getByText('The profile regular is saved first.').waitFor();
  await expectGoodLook(page, 'end-session');
  await question.getByRole('button', { name: 'End session' }).click();
  await page.getByText('This session has ended').waitFor();

  await room('Profiles');
  await page.getByRole('row', { name: 'regular' }).getByRole('button', { name: 'Versions' }).click();
  await page.getByRole('dialog').getByText('current').waitFor();
  await expectGoodLook(page, 'versions');
  expect(complaints).toEqual([]);
  await context.close();
});

test('make a pool and see its queue move', async () => {
  const { page, room, complaints, context } = await signedIn();
  await room('Pools');
  await page.getByRole('button', { name: 'New pool' }).click();
  const form = page.getByRole('dialog');
  await form.getByLabel('Name').fill('checkout');
  await form.getByLabel('Browsers to keep').fill('1');
  await form.getByRole('button', { name: 'Make the pool' }).click();
  const cells = () => page.getByRole('row', { name: 'checkout' }).getByRole('cell').allInnerTexts();
  const counts = async () => (await cells()).slice(1, 4); // idle, lent, waiting
  await until(counts).toEqual(['1', '0', '0']);
  await page.getByRole('row', { name: 'checkout' }).getByRole('button', { name: 'Acquire' }).click();
  await page.getByRole('button', { name: 'Release' }).waitFor();
  const held = page.url();

  const next = service.call('POST', '/browser_pools/checkout/acquire', { acquire_timeout_seconds: 120 });
  await room('Pools');
  await until(counts).toEqual(['0', '1', '1']);
  await expectGoodLook(page, 'pools');
  await page.goto(held);
  await page.getByRole('button', { name: 'Release' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Release' }).click();
  await until(counts).toEqual(['0', '1', '0']);
  expect((await next).status).toBe(200);
  expect(complaints).toEqual([]);
  await context.close();
  await service.call('DELETE', '/browser_pools/checkout', { force: true });
});

// A login is a browser of its own that reads and answers three pages: on a busy machine each takes its time.
test('start a login and answer its questions', async () => {
  const { page, room, complaints, context } = await signedIn();
  context.setDefaultTimeout(2 * PATIENCE);
  await room('Logins');
  await page.getByRole('button', { name: 'New login' }).click();
  const form = page.getByRole('dialog');
  await form.getByLabel('Site').fill(login.host);
  await form.getByLabel('Profile').fill('ann');
  await form.getByLabel('Address of the login page').fill(`${login.url}/`);
  await form.getByRole('button', { name: 'Start the login' }).click();

  await page.getByLabel('Username').waitFor();
  await page.getByRole('button', { name: 'Cancel this login' }).click();
  await page.getByText('The last login was cancelled').waitFor();
  await page.getByRole('button', { name: 'Log in', exact: true }).click();
  await page.getByLabel('Username').fill(ann.username);
  await page.getByRole('textbox', { name: 'Password' }).fill(ann.password);
  await expectGoodLook(page, 'login-question');
  await page.getByRole('button', { name: 'Answer' }).click();
  await page.getByRole('button', { name: 'Text message to' }).click();
  await page.getByLabel('Verification code').fill(ann.code);
  await page.getByRole('button', { name: 'Answer' }).click();
  await page.getByText('signed in', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Explain the newest login' }).click();
  await page.locator('.steps li').first().waitFor();
  await expectGoodLook(page, 'login');
  expect(complaints).toEqual([]);
  await context.close();
});

test('follow an invocation while it runs, and keep the audit log', async () => {
  // Building an app takes long. What the screen shows of an invocation are rows, and these are written as a node does that runs one.
  const { db, nodeId } = service.app.store;
  await db.rows(sql`with deployed as (insert into deployments (id, project_id, status, version, region, force, entrypoint, env_names, source_type)
      select 'dep_shown', id, 'stopped', '1.0', 'local', false, 'index.js', '{}', 'file' from projects where is_default returning *)
    insert into invocations (id, project_id, deployment_id, app_name, version, action_name, payload, status, timeout_seconds, started_at, node_id)
    select 'inv_shown', project_id, id, 'titles', '1.0', 'read', '{"url":"https://shop.example"}', 'running', 900, now(), ${nodeId}
      from deployed`);
  const print = (message: string) => logStore(db).add('inv_shown', [{ at: new Date(), message }]);
  const { page, room, complaints, context } = await signedIn();
  await page.goto(`${service.url}/console/deployments/invocations/inv_shown`);
  await page.getByRole('heading', { name: 'titles read' }).waitFor();
  await page.getByText('No line yet').waitFor();
  const log = page.getByLabel('Log', { exact: true });
  for (const line of ['reading <b>the shop</b>', 'found the title']) {
    await print(line);
    await log.getByText(line).waitFor();
  }
  await page.getByText('Runs for').waitFor();
  await expectGoodLook(page, 'invocation-running');
  await invocationStore(db).finish('inv_shown', { status: 'succeeded', output: '{"title":"Shop"}' });
  await page.getByLabel('the result', { exact: true }).getByText('"title": "Shop"').waitFor();
  await page.getByRole('heading', { name: 'succeeded' }).waitFor();
  expect(await log.innerText()).toBe('reading <b>the shop</b>\nfound the title');
  await expectGoodLook(page, 'invocation');

  await room('Audit log');
  await page.getByLabel('Search').fill('/org/');
  const saved = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Export' }).click();
  expect((await saved).suggestedFilename()).toBe('audit-log.jsonl');
  await page.getByText('entries were saved').waitFor();
  expect(complaints).toEqual([]);
  await context.close();
});

test('give a project a limit, and check and share a credential provider', async () => {
  const { page, room, complaints, context } = await signedIn();
  await room('Projects');
  await page.getByRole('button', { name: 'New project' }).click();
  await page.getByRole('dialog').getByLabel('Name').fill('shop');
  await page.getByRole('button', { name: 'Make the project' }).click();
  await page.getByRole('row', { name: 'shop' }).getByRole('button', { name: 'Edit' }).click();
  await page.getByRole('dialog').getByLabel('Sessions at the same time').fill('3');
  await expectGoodLook(page, 'project');
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
  await page.getByRole('row', { name: 'shop' }).getByRole('cell', { name: '3', exact: true }).waitFor();
  await expectGoodLook(page, 'projects');

  await room('Credentials');
  await page.getByRole('button', { name: 'New provider' }).click();
  const form = page.getByRole('dialog');
  await form.getByLabel('Name').fill('office');
  await form.getByLabel('Address').fill(site.url);
  await form.getByLabel('Token').fill('not-a-token');
  await expectGoodLook(page, 'provider');
  await form.getByRole('button', { name: 'Add the provider' }).click();
  const row = page.getByRole('row', { name: 'office' });
  await row.getByRole('button', { name: 'Check' }).click();
  await row.getByText('The check failed').waitFor();
  await expectGoodLook(page, 'credentials');
  await row.getByRole('cell', { name: 'Default', exact: true }).waitFor();
  await row.getByRole('button', { name: 'Share' }).click();
  await page.getByRole('dialog').getByRole('combobox', { name: 'Projects' }).click();
  await page.getByRole('option', { name: 'shop' }).click();
  await page.keyboard.press('Tab'); // the list of projects closes
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
  await row.getByRole('cell', { name: 'Default, shop', exact: true }).waitFor();
  await row.getByRole('button', { name: 'Remove' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
  await row.waitFor({ state: 'detached' });
  expect(complaints).toEqual([]);
  await context.close();
});

test('every room looks good with nothing or little in it', async () => {
  const { page, room, complaints, context } = await signedIn();
  for (const name of ['Extensions', 'Proxies', 'Logins', 'Apps', 'API keys', 'Audit log', 'About']) {
    await room(name);
    await page.getByLabel('Loading').waitFor({ state: 'detached' });
    await expectGoodLook(page, name.toLowerCase().replace(' ', '-'));
  }
  const settings = page.getByRole('table', { name: 'Settings in force' });
  await settings.getByText(service.dataDir, { exact: true }).waitFor(); // also says that the machine was looked at
  await page.getByRole('table', { name: 'The machine' }).getByRole('cell', { name: 'sandbox', exact: true }).waitFor();
  expect(await settings.getByText('CORRAL_HOST').count()).toBe(0);
  await page.getByRole('switch', { name: 'Also those that have their default' }).click();
  await settings.getByText('CORRAL_HOST').waitFor();
  await expectGoodLook(page, 'about-all');
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('textbox', { name: 'API key' }).waitFor();
  await expectGoodLook(page, 'sign-in');
  expect(complaints).toEqual([]);
  await context.close();
});

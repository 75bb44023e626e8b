/* oxlint-disable vitest/expect-expect -- `until` expects */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { until, viewing } from '../../../test/support/live-view-page.ts';
import { serveHostedPage, type FlowState, type ServedPage } from '../../../test/support/logins/hosted-page.ts';

const username = { id: 'f1', ref: 'user', type: 'identifier', label: 'Username' };
const password = { id: 'f2', ref: 'pass', type: 'password', label: 'Password' };
const asking = { flow_step: 'AWAITING_INPUT', fields: [username, password] };
const liveView = 'https://another-node.example/browser/live?jwt=view';

let served: ServedPage;
const { newContext } = viewing();
beforeAll(async () => {
  served = await serveHostedPage();
});
afterAll(() => served?.close());

async function open(state: FlowState, query = ''): Promise<Page> {
  served.begin(state);
  const page = await (await newContext()).newPage();
  await page.goto(served.url + query);
  await until(() => served.streams.size).toBe(1);
  return page;
}
const user = (page: Page) => page.getByLabel('Username');
const pass = (page: Page) => page.getByLabel('Password', { exact: true });
const text = (page: Page) => until(() => page.locator('body').innerText());

test('typed text stays when the same state arrives again and when the connection breaks', async () => {
  const page = await open(asking);
  await user(page).fill('ann');
  await pass(page).fill('half a pass');
  served.breakStreams();
  await until(() => served.streams.size).toBe(1);
  served.tell({ ...asking, choices: [{ id: 'c1', type: 'sso_provider', label: 'Continue with Acme' }] });
  await text(page).toContain('Continue with Acme');
  expect([await user(page).inputValue(), await pass(page).inputValue()]).toEqual(['ann', 'half a pass']);
});

test('a submit that fails on the way is shown, and nothing has to be typed again', async () => {
  const page = await open(asking);
  await user(page).fill('ann ');
  await pass(page).fill(' secret ');
  served.answers.submit = 0;
  await pass(page).press('Enter');
  await until(() => page.getByRole('alert').innerText()).toContain('was not sent');
  served.answers.submit = 202;
  await page.getByRole('button', { name: 'Continue' }).click();
  await until(() => served.submits).toEqual([{ field_values: { f1: 'ann', f2: ' secret ' } }]);
  await until(() => pass(page).inputValue()).toBe('');
  served.tell({ flow_step: 'SUBMITTING' });
  await until(() => page.getByRole('status').first().innerText()).toBe('Waiting for shop.example…');
  served.tell({ ...asking, website_error: 'Wrong.' });
  await until(() => page.getByRole('alert').innerText()).toBe('shop.example says: Wrong.');
  await until(() => pass(page).evaluate('document.activeElement.id')).toBe(await pass(page).getAttribute('id'));
  expect(await pass(page).getAttribute('aria-invalid')).toBe('true');
});

test('what a login does not wait for any more is not sent twice', async () => {
  const page = await open(asking);
  await user(page).fill('ann');
  await pass(page).fill('secret');
  served.answers.submit = 422;
  await pass(page).press('Enter');
  await text(page).toContain('The site asked another question before your answer arrived.');
  expect(served.submits).toEqual([]);
});

test('what only a person can do is done in the session’s browser, on this page', async () => {
  const waiting = { flow_step: 'AWAITING_EXTERNAL_ACTION', external_action_message: 'Solve the puzzle.' };
  const page = await open({ ...waiting, live_view_url: liveView });
  await text(page).toContain('Solve the puzzle.');
  const show = page.getByRole('button', { name: 'Show the browser' });
  expect(await show.getAttribute('aria-expanded')).toBe('false');
  await show.click();
  const there = page.frameLocator('iframe').getByLabel('there');
  await there.focus();
  expect(page.frames()[1]!.url()).toBe(`${served.origin}/base/browser/live?jwt=view`);
  served.tell({ ...asking, live_view_url: liveView });
  await until(() => user(page).isVisible()).toBe(true);
  expect(await page.evaluate('document.activeElement.tagName')).toBe('IFRAME');
  await page.keyboard.press('F6');
  await until(() => page.evaluate('document.activeElement.id')).toBe('browser-toggle');
  served.tell({ flow_status: 'SUCCESS', flow_step: 'COMPLETED' });
  await text(page).toContain('You are signed in to shop.example');
  expect(await page.locator('iframe').count()).toBe(0);
});

test('a sign-in that fails is in the return address, and runs no script', async () => {
  const failed = {
    flow_status: 'FAILED',
    flow_step: 'SUBMITTING',
    error_code: 'credentials_invalid',
    error_message: 'The site did not accept the password.',
    website_error: 'Locked for an hour.',
  };
  const page = await open(asking, `&error_url=${encodeURIComponent(`${served.origin}/back`)}`);
  served.tell(failed);
  await until(() => page.url()).toBe(
    `${served.origin}/back?code=credentials_invalid&message=The+site+did+not+accept+the+password.`,
  );
  await page.close();
  const other = await open(asking, '&error_url=javascript:document.title=1&success_url=javascript:document.title=2');
  served.tell(failed);
  await text(other).toContain('Locked for an hour.');
  expect(await other.title()).toBe('The sign-in did not work');
  expect(await other.locator('#end-link').isVisible()).toBe(false);
});

test('any content from a site is shown as text', async () => {
  const bad = '<img src=x onerror="document.title=1"><script>document.title=2</script>';
  const page = await open({
    flow_step: 'AWAITING_INPUT',
    domain: bad,
    profile_name: bad,
    website_error: bad,
    fields: [
      { id: bad, ref: bad, type: 'text', label: bad, options: [{ label: bad, value: 'x' }] },
      { id: 'code', ref: 'c', type: 'totp_code', required: false },
    ],
    discovered_fields: [{ name: bad, label: bad, type: 'text', selector: bad, hint: bad }],
    choices: [{ id: bad, type: 'account', label: bad, description: bad }],
  });
  expect(await page.locator('body img, body script').count()).toBe(0);
  expect(await page.getByLabel(bad).inputValue()).toBe('x');
  expect(await page.getByLabel('Code from your authenticator app (optional)').getAttribute('inputmode')).toBe(
    'numeric',
  );
  await page.getByRole('button', { name: bad }).click();
  await until(() => served.submits).toEqual([{ selected_choice_id: bad }]);
});

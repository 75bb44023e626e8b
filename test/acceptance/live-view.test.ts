/* oxlint-disable vitest/expect-expect -- `until` expects */
import { once } from 'node:events';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { firstPage, viewers, watched, type PageUnderTest, type Watched } from '../support/live-view.ts';
import {
  BUTTON,
  FIELD,
  GROUND,
  html,
  isRed,
  opener,
  raw,
  READ_ONLY,
  script,
  until,
} from '../support/live-view-page.ts';

let looking: Awaited<ReturnType<typeof viewers>>;
const { newContext, open, close } = opener(() => looking.browser);

beforeAll(async () => {
  looking = await viewers();
});
afterAll(() => looking?.stop());
afterEach(close);

describe.each([
  { kind: 'headless', headless: true, full: false },
  { kind: 'headless with the full browser', headless: true, full: true },
  { kind: 'headful', headless: false, full: true },
])('the live view of a $kind session', ({ headless, full }) => {
  let session: Watched;
  let under: PageUnderTest;

  beforeAll(async () => {
    session = await watched({ headless, full });
    under = await firstPage(session);
  });
  afterAll(() => session?.stop());
  beforeEach(async () => {
    await under.setContent(html);
    await under.evaluate(script);
  });

  const value = () => under.evaluate('field.value');
  const clients = () => session.mux.clientCount;

  test('shows a page that does not change, and then every change', async () => {
    const view = await open(session, under);
    await until(() => view.colour(GROUND)).toEqual([255, 255, 255]);
    await view.click(BUTTON);
    await until(async () => isRed(await view.colour(GROUND))).toBe(true);
  });

  test('types what a keyboard of any layout types', async () => {
    const view = await open(session, under);
    await view.click(FIELD);
    await until(() => under.evaluate('document.activeElement.id')).toBe('field');
    await view.page.keyboard.type('Ab 1!');
    for (const [key, code] of [
      ['é', 'Digit2'],
      ['ß', 'Minus'],
      ['ж', 'Semicolon'],
    ] as const) {
      await view.cdp.send('Input.dispatchKeyEvent', { type: 'keyDown', key, code, text: key });
      await view.cdp.send('Input.dispatchKeyEvent', { type: 'keyUp', key, code });
    }
    await until(value).toBe('Ab 1!éßж');
    await view.page.keyboard.press('Backspace');
    await view.page.keyboard.press('Home');
    await view.page.keyboard.press('Delete');
    await until(value).toBe('b 1!éß');
  });

  test('types what dead keys and input methods compose', async () => {
    const view = await open(session, under);
    await view.click(FIELD);
    await until(() => under.evaluate('document.activeElement.id')).toBe('field');
    await view.cdp.send('Input.dispatchKeyEvent', { type: 'rawKeyDown', key: 'Dead', code: 'Quote' });
    await view.cdp.send('Input.imeSetComposition', { text: '´', selectionStart: 1, selectionEnd: 1 });
    await view.cdp.send('Input.insertText', { text: 'ó' });
    await until(value).toBe('ó');
    await view.cdp.send('Input.imeSetComposition', { text: 'ni', selectionStart: 2, selectionEnd: 2 });
    await view.cdp.send('Input.insertText', { text: '你' });
    await until(value).toBe('ó你');
  });

  test('turns the wheel', async () => {
    const view = await open(session, under);
    const { x, y } = await view.at(GROUND);
    await view.page.mouse.move(x, y);
    await view.page.mouse.wheel(0, 300);
    await until(() => under.evaluate('scrollY')).toBeGreaterThan(100);
  });

  test('pastes from the viewer into the page, as a paste', async () => {
    const view = await open(session, under);
    await view.click(FIELD);
    await view.page.evaluate(`navigator.clipboard.writeText('from outside: ü 漢')`);
    await view.page.keyboard.press('Control+v');
    await until(value).toBe('from outside: ü 漢');
    expect(await under.evaluate('seen')).toContain('paste');
    await view.page.keyboard.type('!');
    await until(value).toBe('from outside: ü 漢!');
  });

  test('pastes from the panel, where the clipboard may not be read', async () => {
    const view = await open(session, under);
    await view.click(FIELD);
    await view.page.locator('#clipboard-button').click();
    await view.page.locator('#clipboard-text').fill('from the panel');
    await view.page.locator('#clipboard-paste').click();
    await until(value).toBe('from the panel');
  });

  test('copies from the page to the viewer', async () => {
    const view = await open(session, under);
    await view.page.evaluate(`navigator.clipboard.writeText('something else')`);
    await view.click(FIELD);
    await until(() => under.evaluate('seen')).toContain('click');
    await under.evaluate(`field.value = 'from inside: ß 漢'; field.select()`);
    await view.page.keyboard.press('Control+c');
    const clipboard = () => view.page.evaluate('navigator.clipboard.readText()');
    await until(clipboard).toBe('from inside: ß 漢');
    expect(await under.evaluate('seen')).toContain('copy');
    await until(() => view.page.locator('#clipboard-text').inputValue()).toBe('from inside: ß 漢');
  });

  test('is seen and used by two at once', async () => {
    const [one, other] = [await open(session, under), await open(session, under)];
    await one.click(FIELD);
    await one.page.keyboard.type('one');
    await until(value).toBe('one');
    await other.page.keyboard.type(' other');
    await until(value).toBe('one other');
    await other.click(BUTTON);
    await until(async () => isRed(await one.colour(GROUND))).toBe(true);
    await until(async () => isRed(await other.colour(GROUND))).toBe(true);
  });

  test('lets who only watches do nothing', async () => {
    const view = await open(session, under, READ_ONLY);
    expect(await view.page.locator('#badge').isVisible()).toBe(true);
    await view.click(BUTTON);
    await view.click(FIELD);
    await view.page.keyboard.type('nothing');
    const { x, y } = await view.at(GROUND);
    await view.page.mouse.move(x, y);
    await view.page.mouse.wheel(0, 300);
    const hands = await open(session, under);
    await hands.click(FIELD);
    await hands.page.keyboard.type('z');
    await until(value).toBe('z');
    expect(await under.evaluate('seen')).toEqual(['mousedown', 'click', 'keydown z']);
    await under.evaluate('button.click()');
    await until(async () => isRed(await view.colour(GROUND))).toBe(true);
  });

  test('lets nobody else in, and says when the link has expired', async () => {
    const view = await open(session, under);
    session.answers.status = 401;
    for (const sink of session.sinks) sink.close(1012, 'The browser crashed.');
    await until(view.state).toBe('expired');
    session.answers.status = 200;
  });

  test('comes back when the browser restarts', async () => {
    const view = await open(session, under);
    await view.page
      .evaluate(`window.said = []; new MutationObserver(() => said.push(document.getElementById('state').innerText))
      .observe(document.documentElement, { attributes: true })`);
    for (const sink of session.sinks) sink.close(1012, 'It crashed.');
    await until(() => view.page.evaluate('said.join()')).toContain('The browser restarts…');
    await until(view.state).toBe('connected');
    await view.click(FIELD);
    await view.page.keyboard.type('back');
    await until(value).toBe('back');
  });

  test('works in a frame of another page', async () => {
    const context = await newContext();
    const page = await context.newPage();
    await page.goto(session.url.replace('127.0.0.1', 'localhost').replace('/base/', '/elsewhere/'));
    await page.setContent(`<iframe src="${session.url.replaceAll('&', '&amp;')}" width="900" height="600"></iframe>`);
    const frame = page.frameLocator('iframe');
    await until(() => frame.locator('html').getAttribute('data-state')).toBe('connected');
    await frame.locator('canvas:visible').click();
    await page.keyboard.type('x');
    await until(() => under.evaluate('seen.join()')).toContain('keydown x');
  });

  describe('leaves nothing behind', () => {
    const sockets = () => process.getActiveResourcesInfo().filter((kind) => kind === 'PipeWrap').length;

    test.each<[string, () => unknown]>([
      ['a viewer who closes the page', close],
      ['a service that ends the connection', () => session.sinks.forEach((sink) => sink.close(1001, 'Enough.'))],
    ])('%s', async (_, leave) => {
      const before = [clients(), sockets()];
      await open(session, under);
      await leave();
      await until(() => [session.sinks.size, clients(), sockets()]).toEqual([0, ...before]);
    });

    test('a viewer who vanishes, and one who never says a word', async () => {
      const before = [clients(), sockets()];
      const [silent, vanishing] = [await raw(session), await raw(session)];
      vanishing.terminate();
      silent.close();
      await until(() => [session.sinks.size, clients(), sockets()]).toEqual([0, ...before]);
    });
  });

  // The last one: there is no session after it.
  test('says that the session has ended, and why', async () => {
    const view = await open(session, under);
    session.mux.close(1001, 'The session was deleted.');
    await session.browser.stop();
    await until(view.state).toBe('ended');
    const text = await view.page.locator('#state').innerText();
    expect(text).toContain('The session has ended.');
    expect(text).toContain(headless ? 'The session was deleted.' : 'The browser went away.');
    await until(() => session.sinks.size).toBe(0);
    const late = await raw(session);
    await once(late, 'close');
  });
});

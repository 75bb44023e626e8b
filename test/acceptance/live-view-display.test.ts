/* oxlint-disable vitest/expect-expect -- `until` expects */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { WebSocket } from 'ws';
import { localClient } from '../../src/chromium/cdp/local-client.ts';
import { isCreated } from '../../src/chromium/cdp/shapes.ts';
import { firstPage, watched, type PageUnderTest, type Watched } from '../support/live-view.ts';
import {
  BUTTON,
  closeCode,
  FIELD,
  GROUND,
  html,
  isRed,
  raw,
  READ_ONLY,
  script,
  until,
  viewing,
} from '../support/live-view-page.ts';

const { open } = viewing();

describe('the display', () => {
  let session: Watched;
  let under: PageUnderTest;

  beforeAll(async () => {
    session = await watched({ headless: false });
    under = await firstPage(session);
    await under.setContent(html);
    await under.evaluate(script);
  });
  afterAll(() => session?.stop());

  /** Through RFB's greeting, by hand. */
  async function greeted(query = ''): Promise<WebSocket> {
    const parts: Buffer[] = [];
    const socket = await raw(session, query, (opening) => {
      opening.on('message', (data: Buffer, isBinary) => isBinary && parts.push(data));
    });
    const read = (bytes: number) => until(() => Buffer.concat(parts).length).toBeGreaterThanOrEqual(bytes);
    await read(12);
    socket.send('RFB 003.008\n');
    await read(12 + 2);
    socket.send(Buffer.from([1]));
    await read(12 + 2 + 4);
    socket.send(Buffer.from([1]));
    await read(12 + 2 + 4 + 24);
    socket.removeAllListeners('message');
    return socket;
  }

  const keyDown = (character: string) => Buffer.from([4, 1, 0, 0, 0, 0, 0, character.charCodeAt(0)]);
  const keyUp = (character: string) => Buffer.from([4, 0, 0, 0, 0, 0, 0, character.charCodeAt(0)]);

  test('has a key for every letter it says it has', async () => {
    const view = await open(session, under);
    await view.click(FIELD);
    const range = (first: number, last: number) =>
      Array.from({ length: last - first + 1 }, (_, i) => String.fromCharCode(first + i)).join('');
    const all = range(0xa1, 0xac) + range(0xae, 0x17f) + range(0x391, 0x3a1) + range(0x400, 0x45f) + '–—‘’“”„…€ĞğȘț';
    const letters = all.replace(/[ĔĕĬĭŎŏĸĿŀŉŊŋŦŧſĲĳЀЍѐѝ]/g, ''); // those it does not have
    const entered = () => under.evaluate('field.value');
    await under.evaluate(`field.value = ''`);
    await view.page.keyboard.insertText(letters);
    await until(entered).toBe(letters);
    await under.evaluate(`field.value = ''`);
  });

  test('names the session and the page in front, as text, and follows the driver', async () => {
    const view = await open(session, under, READ_ONLY);
    await under.evaluate(`document.title = '<b>First</b>'`);
    await until(() => view.page.title()).toBe('<b>First</b> – A <session>');
    expect(await view.page.locator('#page-title').innerText()).toBe('<b>First</b>');
    expect(await view.page.locator('#title').innerText()).toBe('A <session>');

    const driver = localClient((sink) => session.mux.attach(sink));
    const url = 'data:text/html,<title>Made</title><body style="background:red">';
    const { targetId } = await driver.ask(isCreated, 'Target.createTarget', { url });
    await until(() => view.page.title()).toBe('Made – A <session>');
    await until(async () => isRed(await view.colour(GROUND))).toBe(true);
    await driver.send('Target.activateTarget', { targetId: under.targetId });
    await until(() => view.page.title()).toBe('<b>First</b> – A <session>');
    await until(() => view.colour(GROUND)).toEqual([255, 255, 255]);
    await driver.send('Target.closeTarget', { targetId });
    driver.close();
  });

  test('shows the browser’s own lists and dialogs, and accepts input for them', async () => {
    const view = await open(session, under);
    await under.setContent(`${html}<select id="list" style="position:absolute;left:100px;top:300px;width:200px;height:60px;font-size:40px">
      <option>one<option>two<option>three</select>`);
    await under.evaluate(script);
    await view.click({ x: 150, y: 330 });
    await until(() => under.evaluate(`list.matches(':open')`)).toBe(true);
    const second = { x: 150, y: 360 + 80 }; // if each option has from 40 to 80 pixels
    await until(async () => (await view.colour(second)).join()).not.toBe('255,255,255');
    await view.click(second);
    await until(() => under.evaluate('list.value')).toBe('two');

    await view.click(BUTTON);
    const covered = { x: 500, y: 60 };
    await until(async () => isRed(await view.colour(covered))).toBe(true);
    const y = 60 + Number(await under.evaluate('outerHeight - innerHeight')); // a page with a dialog does not answer
    const answer = under.evaluate(`prompt('Your name?', 'nobody')`);
    await until(() => view.pixel({ x: 500, y })).toEqual([255, 255, 255]);
    await view.page.keyboard.type('somebody'); // its default text is selected
    await view.page.keyboard.press('Enter');
    expect(await answer).toBe('somebody');
  });

  test('shows the browser’s own pickers and menu, which take the viewer’s keys', async () => {
    await under.setContent(`<title>Under test</title><body style="background:red">
      <style>input, a { position: absolute; left: 100px; width: 200px; height: 30px }</style>
      <input id="day" type="date" value="2020-01-31" style="top:100px"><input id="colour" type="color" value="#ff0000" style="top:140px">
      <a href="about:blank#linked" style="top:180px">A link</a>`);
    const view = await open(session, under);
    const { keyboard } = view.page;
    // A popup is a window of its own, somewhere near, which covers a part of the page.
    const pixels = Number(await under.evaluate('innerWidth * innerHeight'));
    const red = `(() => {
      const { data } = document.querySelector('#display canvas').getContext('2d').getImageData(0, 0, 1000, 700);
      let red = 0;
      for (let i = 0; i < data.length; i += 4) if (data[i] > 200 && data[i + 1] < 60 && data[i + 2] < 60) red += 1;
      return red;
    })()`;
    const covered = () => until(async () => pixels - Number(await view.page.evaluate(red)));
    const isGone = () => covered().toBeLessThan(25_000); // the controls alone
    const shown = async (place: { x: number; y: number }, button?: 'left' | 'right') => {
      await isGone();
      await view.click(place, button);
      await covered().toBeGreaterThan(40_000);
    };

    await shown({ x: 292, y: 115 });
    await keyboard.press('ArrowRight');
    await keyboard.press('Enter');
    await until(() => under.evaluate('day.value')).toBe('2020-02-01');
    await shown({ x: 150, y: 155 });
    await keyboard.press('ArrowLeft');
    await keyboard.press('Enter');
    await until(() => under.evaluate('colour.value')).toMatch(/^#ff(?!0000)/);
    await shown({ x: 105, y: 190 }, 'right');
    await keyboard.press('ArrowDown');
    await keyboard.press('Enter'); // Open link in new tab
    const linked = async () => (await session.pages()).find(({ url }) => url.endsWith('#linked'));
    await until(linked).toBeDefined();
    await isGone();
    await session.cdp.send('Target.closeTarget', { targetId: (await linked())!.targetId });
  });

  test('takes the shortcuts of the browser’s window', async () => {
    await under.setContent(html);
    const view = await open(session, under);
    const title = () => until(() => view.page.title());
    await title().toMatch(/^Under test/);
    await view.press('t', 'Control');
    await title().toMatch(/^New Tab/);
    await view.press('w', 'Control');
    await title().toMatch(/^Under test/);
    for (const [key, held] of [['F5'], ['r', 'Control']] as const) {
      await under.evaluate('window.old = true');
      await view.press(key, held);
      await until(() => under.evaluate('window.old')).toBeUndefined();
    }
    const visit = async (address: string) => {
      await view.press('l', 'Control');
      await until(() => under.evaluate('document.hasFocus()')).toBe(false); // the bar has it, after the page has heard of the key
      await view.page.keyboard.type(address);
      await view.page.keyboard.press('Enter');
    };
    await visit('data:text/html,<title>Next</title>');
    await title().toMatch(/^Next/);
    await visit('http://none.test:1/'); // a port that Chromium never asks
    await until(() => under.evaluate('document.body.innerText')).toContain('ERR_UNSAFE_PORT');
    await view.press('ArrowLeft', 'Alt');
    await title().toMatch(/^Next/);
    await under.setContent(html);
    await under.evaluate(script);
  });

  test('searches for words in the browser’s own address bar with the engine of the service', async () => {
    const view = await open(session, under);
    const pageHasKeys = () => until(() => under.evaluate('document.hasFocus()'));
    await view.click(GROUND);
    await pageHasKeys().toBe(true);
    await view.press('l', 'Control');
    await pageHasKeys().toBe(false); // the page is asked about the shortcut first
    await view.page.keyboard.type('two words');
    await view.page.keyboard.press('Enter');
    await until(() => session.asked).toContain('http://search.test/?q=two+words');
    await session.cdp.send('Page.navigate', { url: 'about:blank' }, under.sessionId);
    await until(() => under.evaluate('location.href')).toBe('about:blank');
    await under.setContent(html);
    await under.evaluate(script);
  });

  test('takes no key of a raw read-only viewer', async () => {
    const before = String(await under.evaluate('field.focus(), field.value'));
    const watching = await greeted(READ_ONLY);
    watching.send(Buffer.concat([keyDown('q'), keyUp('q')]));
    const hands = await greeted();
    hands.send(Buffer.concat([keyDown('h'), keyUp('h')]));
    await until(() => under.evaluate('field.value')).toBe(`${before}h`);
    const closed = closeCode(watching);
    watching.send(Buffer.from([99]));
    expect(await closed).toBe(1008);
    hands.close();
  });

  test('stops reading from the display while a viewer does not read', async () => {
    await until(() => session.sinks.size).toBe(0); // viewers of the test before may still be leaving
    const slow = await greeted();
    const [sink] = session.sinks;
    slow.pause();
    await until(() => {
      slow.send(Buffer.from([3, 0, 0, 0, 0, 0, 3, 0xe8, 2, 0xbc])); // asks for all of 1000x700, raw
      return sink!.bufferedAmount;
    }).toBeGreaterThan(1024 * 1024);
    let most = 0;
    const quick = await open(session, under);
    for (let i = 0; i < 20; i++) {
      await quick.click({ x: GROUND.x + i, y: GROUND.y });
      most = Math.max(most, sink!.bufferedAmount);
    }
    expect(most).toBeLessThan(2 * 1024 * 1024);
    slow.resume();
    await until(() => sink!.bufferedAmount).toBe(0);
    slow.close();
  });
});

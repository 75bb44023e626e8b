/* oxlint-disable vitest/expect-expect -- `until` expects */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { WebSocket } from 'ws';
import { isCreated } from '../../src/chromium/cdp/shapes.ts';
import { localClient } from '../../src/chromium/cdp/local-client.ts';
import { record } from '../../src/lib/shape.ts';
import { firstPage, pageAt, watched, type PageUnderTest, type Watched } from '../support/live-view.ts';
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

describe('the screencast', () => {
  let session: Watched;
  let under: PageUnderTest;

  beforeAll(async () => {
    session = await watched({ headless: true });
    under = await firstPage(session);
  });
  afterAll(() => session?.stop());
  beforeEach(async () => {
    await under.setContent(html);
    await under.evaluate(script);
  });

  afterEach(async () => {
    for (const { targetId } of await session.pages())
      if (targetId !== under.targetId) await session.cdp.send('Target.closeTarget', { targetId }).catch(() => {}); // it may be closing already
    await until(async () => (await session.pages()).length).toBe(1); // the next viewer would begin with the tab that goes
  });

  test('lists the tabs, switches, opens and closes them', async () => {
    const view = await open(session, under);
    const names = () => view.page.locator('.tab .name').allInnerTexts();
    await until(names).toEqual(['Under test']);
    const url = 'data:text/html,<title>Second</title><body style="background:red">';
    const { targetId } = await session.cdp.ask(isCreated, 'Target.createTarget', { url });
    await until(names).toEqual(['Under test', 'Second']);
    await view.page.getByRole('tab', { name: 'Second' }).click();
    await until(async () => isRed(await view.colour(GROUND))).toBe(true);
    await until(() => view.page.locator('#address').inputValue()).toBe(url);
    await view.page.getByRole('tab', { name: 'Under test' }).click();
    await until(() => view.colour(GROUND)).toEqual([255, 255, 255]);
    await until(view.shown).toBe('Under test'); // then the tabs are drawn, and not once more under the mouse
    await view.page.locator(`[data-id="${targetId}"] .close`).click();
    await until(names).toEqual(['Under test']);

    await view.page.locator('#new-tab').click();
    await until(names).toEqual(['Under test', 'New tab']);
    await until(view.shown).toBe('New tab');
    await session.pages(); // what the viewer says now is for that tab
    await view.page.locator('#address').fill('data:text/html,<title>Third</title>');
    await view.page.keyboard.press('Enter');
    await until(names).toEqual(['Under test', 'Third']);
    await until(() => view.page.locator('#back').isEnabled()).toBe(true);
    await view.page.locator('.tab[data-shown] .close').click();
    await until(names).toEqual(['Under test']);
    await until(view.shown).toBe('Under test');
  });

  test('follows a page that the shown one opens', async () => {
    const view = await open(session, under);
    await under.evaluate(
      `button.onclick = () => { const page = open('about:blank'); page.document.title = 'Opened'; }`,
    );
    await view.click(BUTTON);
    await until(() => view.page.locator('.tab[data-shown] .name').innerText()).toBe('Opened');
    await view.page.locator('.tab[data-shown] .close').click();
    await until(() => view.page.locator('.tab[data-shown] .name').innerText()).toBe('Under test');
  });

  test('follows the driver to the tab that it makes or brings to the front, unless the viewer stays', async () => {
    const driver = localClient((sink) => session.mux.attach(sink));
    const [view, watching] = [await open(session, under), await open(session, under, READ_ONLY)];
    const front = (targetId: string) => driver.send('Target.activateTarget', { targetId });
    const url = 'data:text/html,<title>Made</title>';
    const { targetId } = await driver.ask(isCreated, 'Target.createTarget', { url });
    for (const each of [view, watching]) await until(each.shown).toBe('Made');
    await until(() => view.page.title()).toBe('Made – A <session>');
    await front(under.targetId);
    for (const each of [view, watching]) await until(each.shown).toBe('Under test');
    expect(await view.page.locator('#title').innerText()).toBe('A <session>');
    await watching.page.locator('#follow').click();
    // The service hears of it after the click. When it shows what the viewer asks for next, it has.
    await watching.page.getByRole('tab', { name: 'Made' }).click();
    await until(watching.shown).toBe('Made');
    await front(targetId);
    await until(view.shown).toBe('Made');
    await front(under.targetId);
    await until(view.shown).toBe('Under test');
    expect(await watching.shown()).toBe('Made');
    await watching.page.locator('#follow').click();
    await until(watching.shown).toBe('Under test');
    driver.close();
  });

  const controls = `<title>Under test</title><body style="margin:0;background:#fff">
    <style>select, input, a { position: absolute; left: 100px; width: 200px; height: 30px; box-sizing: border-box }</style>
    <select id="list" style="top:100px"><option>one<option disabled>two<optgroup label="<b>More</b>"><option value="3">
      &lt;i&gt;three<option>four</optgroup></select>
    <input id="colour" type="color" style="top:200px"><input id="day" type="date" value="2020-01-31" style="top:300px">
    <input id="town" list="towns" style="top:400px"><datalist id="towns"><option value="Rome"><option value="Paris"></datalist>
    <a href="data:text/html,<title>Linked</title>" style="top:500px">A link</a>`;
  const recorder = `window.seen = []; for (const name of ['input', 'change', 'contextmenu'])
    addEventListener(name, ({ target, isTrusted }) => seen.push([name, target.id, isTrusted].join(' ')), true)`;

  test('draws the popups that a headless browser does not paint, and takes the choice', async () => {
    await under.setContent(controls);
    await under.evaluate(recorder);
    const view = await open(session, under);
    const popup = view.page.locator('#popup');
    const valueOf = (id: string) => under.evaluate(`${id}.value`);
    // While one is drawn, the next click would close it instead of opening another, and the next one would be taken for open already.
    const isGone = () => until(() => popup.isVisible()).toBe(false);

    await view.click({ x: 150, y: 115 });
    await until(() => popup.locator('option').allInnerTexts()).toEqual(['one', 'two', '<i>three', 'four']);
    expect(await popup.locator('optgroup').getAttribute('label')).toBe('<b>More</b>');
    const chosen = (style: string) =>
      view.page.evaluate(
        `getComputedStyle(document.querySelector('#popup option:checked')).getPropertyValue('${style}')`,
      );
    expect(await chosen('-webkit-text-fill-color')).toBe('rgb(255, 255, 255)');
    expect(await chosen('background-image')).toContain('rgb(47, 95, 168)');
    await popup.getByRole('option', { name: 'four' }).click();
    await until(() => valueOf('list')).toBe('four');
    await until(() => under.evaluate('seen')).toEqual(['input list true', 'change list true']);
    await isGone();
    await view.page.keyboard.press('Space');
    await until(() => popup.isVisible()).toBe(true);
    await view.page.keyboard.press('ArrowUp');
    await view.page.keyboard.press('Enter');
    await until(() => valueOf('list')).toBe('3');
    await isGone();
    await view.click({ x: 150, y: 115 });
    await until(() => popup.isVisible()).toBe(true);
    await view.page.keyboard.press('Escape');
    await until(() => under.evaluate(`list.matches(':open')`)).toBe(false);
    expect(await valueOf('list')).toBe('3');
    await isGone();

    await view.click({ x: 150, y: 215 });
    await popup.locator('input').fill('#12ab34');
    await popup.getByRole('button', { name: 'Set' }).click();
    await until(() => valueOf('colour')).toBe('#12ab34');
    await isGone();
    await view.click({ x: 288, y: 315 });
    await popup.locator('input').fill('2024-02-29');
    await popup.getByRole('button', { name: 'Set' }).click();
    await until(() => valueOf('day')).toBe('2024-02-29');
    await until(() => under.evaluate('seen')).toContain('change day false');
    await isGone();

    await view.click({ x: 150, y: 415 });
    await view.page.keyboard.type('ri');
    await until(() => popup.locator('option').allInnerTexts()).toEqual(['Paris']);
    expect(await popup.locator('option:checked').count()).toBe(0);
    await view.page.keyboard.press('ArrowDown');
    await view.page.keyboard.press('Enter');
    await until(() => valueOf('town')).toBe('Paris');
  });

  test('draws lists of frames in their place, and a menu where the page has none', async () => {
    const frame = `<select id=inner style='position:absolute;left:10px;top:10px'><option>a<option>b</select>`;
    const iframe = (left: number, more: string) =>
      `<iframe ${more} srcdoc="${frame}" style="position:absolute;left:${left}px;top:600px;width:200px;height:60px"></iframe>`;
    await under.setContent(controls + iframe(100, '') + iframe(400, 'sandbox="allow-scripts"'));
    await until(() => under.evaluate(`!!frames[0]?.document.getElementById('inner')`)).toBe(true);
    await under.evaluate(recorder);
    const view = await open(session, under);
    const popup = view.page.locator('#popup');
    for (const left of [100, 400]) {
      await view.click({ x: left + 22, y: 622 });
      await until(() => popup.locator('option').allInnerTexts()).toEqual(['a', 'b']);
      expect((await popup.boundingBox())!.x).toBeGreaterThan((await view.at({ x: left, y: 0 })).x);
      await popup.getByRole('option', { name: 'b' }).click();
      await until(() => popup.isVisible()).toBe(false);
    }
    await until(() => under.evaluate('frames[0].inner.value')).toBe('b');

    const { x, y } = await view.at({ x: 120, y: 510 });
    await view.page.mouse.click(x, y, { button: 'right' });
    await popup.getByRole('menuitem', { name: 'Open link in new tab' }).click();
    await until(() => view.page.locator('.tab[data-shown] .name').innerText()).toBe('Linked');
    await view.page.getByRole('tab', { name: 'Under test' }).click();
    await until(() => view.page.locator('.tab[data-shown] .name').innerText()).toBe('Under test');
    await until(() => view.colour(GROUND)).toEqual([255, 255, 255]);
    await under.evaluate(`addEventListener('contextmenu', (event) => event.preventDefault())`);
    const ground = await view.at(GROUND);
    await view.page.mouse.click(ground.x, ground.y, { button: 'right' });
    await until(() => under.evaluate('seen.length')).toBe(2);
    await view.click({ x: 150, y: 115 });
    await until(() => popup.locator('option').count()).toBe(4);
    expect(await popup.getAttribute('role')).toBe('group');
  });

  test('takes the shortcuts of a window, and says why a page did not load', async () => {
    const view = await open(session, under, '&header=true');
    const key = async (modifiers: number, key: string, code: string, windowsVirtualKeyCode: number) => {
      // Not by the viewer's own browser, which may take them for itself.
      const event = { modifiers, key, code, windowsVirtualKeyCode };
      await view.cdp.send('Input.dispatchKeyEvent', { type: 'rawKeyDown', ...event });
      await view.cdp.send('Input.dispatchKeyEvent', { type: 'keyUp', ...event });
    };
    await view.click(GROUND);
    await key(2, 't', 'KeyT', 84);
    await until(view.shown).toBe('New tab');
    await session.pages(); // what the viewer says now is for that tab
    await view.page.locator('#address').fill('http://none.test/');
    await view.page.keyboard.press('Enter');
    await until(() => view.page.locator('#notice').innerText()).toContain('The page did not load.');
    await until(() => view.page.locator('#address').inputValue()).toBe('http://none.test/');
    await view.page.locator('#address').fill('two words');
    await view.page.keyboard.press('Enter');
    await until(() => view.page.locator('#address').inputValue()).toBe('http://search.test/?q=two%20words');
    await key(2, 'l', 'KeyL', 76);
    await view.page.keyboard.type('data:text/html,<title>Next</title>');
    await view.page.keyboard.press('Enter');
    await until(view.shown).toBe('Next');
    await until(() => view.page.locator('#back').isEnabled()).toBe(true);
    await key(1, 'ArrowLeft', 'ArrowLeft', 37);
    await until(() => view.page.locator('#address').inputValue()).toBe('http://search.test/?q=two%20words');
    await view.page.locator('#keyboard').focus();
    await key(2, 'w', 'KeyW', 87);
    await until(view.shown).toBe('Under test');
    await under.evaluate('window.old = true');
    await key(0, 'F5', 'F5', 116);
    await until(() => under.evaluate('window.old')).toBeUndefined();
    const bare = await open(session, under, '&header=false');
    expect(await bare.page.locator('header').isVisible()).toBe(false);
  });

  test('shows dialogs, and takes their answers', async () => {
    const view = await open(session, under);
    const answer = under.evaluate(`prompt('Your name?', 'nobody')`);
    await until(() => view.page.locator('#dialog-message').innerText()).toBe('Your name?');
    await view.page.keyboard.type('somebody'); // its default text is selected
    await view.page.locator('#dialog-accept').click();
    expect(await answer).toBe('somebody');
    const confirmed = under.evaluate(`confirm('Sure?')`);
    await view.page.locator('#dialog-cancel').click();
    expect(await confirmed).toBe(false);
    await view.click(FIELD);
    await view.page.keyboard.type('on');
    await until(() => under.evaluate('field.value')).toBe('on');
  });

  test('holds up no dialog of other clients only to watch', async () => {
    const view = await open(session, under, READ_ONLY);
    await under.evaluate('alert(1)');
    expect(await view.page.locator('#dialog').isVisible()).toBe(false);
  });

  test('copies what the page itself puts into the clipboard on Ctrl+C, and from a frame', async () => {
    const view = await open(session, under);
    const clipboard = () => view.page.evaluate('navigator.clipboard.readText()');
    await under.evaluate(`document.addEventListener('copy', (event) => {
      event.clipboardData.setData('text/plain', 'made by the page');
      event.preventDefault();
    })`);
    await view.click(GROUND);
    await view.page.keyboard.press('Control+c');
    await until(clipboard).toBe('made by the page');

    await under.setContent(
      `<iframe srcdoc="<input id=inner value='in a frame'>" style="position:absolute;left:0;top:0">`,
    );
    await until(() => under.evaluate(`!!frames[0]?.document.getElementById('inner')`)).toBe(true);
    await under.evaluate(`frames[0].document.getElementById('inner').select()`);
    await view.page.keyboard.press('Control+x');
    await until(clipboard).toBe('in a frame');
    await until(() => under.evaluate(`frames[0].document.getElementById('inner').value`)).toBe('');
    await view.page.keyboard.press('Control+v');
    await until(() => under.evaluate(`frames[0].document.getElementById('inner').value`)).toBe('in a frame');
  });

  test('lets another client work as if there were no viewer', async () => {
    const view = await open(session, under);
    const { sessionId } = await pageAt(session.cdp, under.targetId);
    await session.cdp.send('Page.enable', {}, sessionId);
    let frames = 0;
    session.cdp.on('Page.screencastFrame', record, () => (frames += 1));
    await session.cdp.send('Page.startScreencast', { format: 'png', maxWidth: 100, maxHeight: 100 }, sessionId);
    await until(() => frames).toBeGreaterThan(0);
    await session.cdp.send('Page.stopScreencast', {}, sessionId);
    await under.evaluate('button.click()');
    await until(async () => isRed(await view.colour(GROUND))).toBe(true);
  });

  test('ignores what a raw viewer may not say', async () => {
    const watching = await raw(session, READ_ONLY);
    const say = (message: object) => watching.send(JSON.stringify(message));
    await under.evaluate('field.focus()');
    const key = { type: 'key', event: 'down', key: 'q', code: 'KeyQ', text: 'q', keyCode: 81, location: 0 };
    say({ ...key, repeat: false, modifiers: 0 });
    say({ type: 'text', text: 'text' });
    say({ type: 'compose', text: 'text' });
    say({ type: 'paste', text: 'paste' });
    say({ type: 'copy', cut: true });
    say({ type: 'navigate', address: 'data:text/html,gone' });
    say({ type: 'newTab' });
    say({ type: 'closeTab', id: under.targetId });
    say({ type: 'history', to: 'reload' });
    const mouse = { type: 'mouse', event: 'down', ...BUTTON, button: 'left', buttons: 1, clickCount: 1, modifiers: 0 };
    say(mouse);
    say({ ...mouse, event: 'up', buttons: 0 });

    const hands = await raw(session, '', (socket) => {
      // Its first picture says that there is a tab to write to.
      socket.once('message', function write(_: Buffer, isBinary: boolean) {
        if (isBinary) socket.send(JSON.stringify({ type: 'text', text: 'only this' }));
        else socket.once('message', write);
      });
    });
    for (const nonsense of [
      '',
      'null',
      '[]',
      '{}',
      '{"type":"__proto__"}',
      '{"type":"text"}',
      '\u0000',
      '{"type":"mouse"}',
    ])
      hands.send(nonsense);
    hands.send(Buffer.from([0xff, 0xfe]));
    await until(() => under.evaluate('field.value')).toBe('only this');
    expect(await under.evaluate('seen')).toEqual([]);
    expect((await session.pages()).map(({ url }) => url)).toEqual(['about:blank']);
    watching.close();
    hands.close();
  });

  test.each([
    ['one who sends too much at once', 1009, (socket: WebSocket) => socket.send('x'.repeat(1024 * 1024 + 2000))],
    [
      'one who sends too often',
      1008,
      (socket: WebSocket) => Array.from({ length: 5000 }, () => socket.send('{"type":"ack"}')),
    ],
  ])('closes on %s', async (_, code, misbehave) => {
    const before = session.mux.clientCount;
    const socket = await raw(session);
    const closed = closeCode(socket);
    misbehave(socket);
    expect(await closed).toBe(code);
    // Viewers of the tests before may still be leaving when this one comes.
    await until(() => session.mux.clientCount).toBeLessThanOrEqual(before);
  });

  test('sends a slow viewer no more than it draws, and the last picture in the end', async () => {
    const pictures: Buffer[] = [];
    const slow = await raw(session, '', (socket) => {
      socket.on('message', (data: Buffer, isBinary) => isBinary && pictures.push(data));
    });
    const quick = await open(session, under);
    await until(() => pictures.length).toBeGreaterThan(0);
    await under.evaluate(`new Promise((resolve) => {
      let frame = 0;
      (function next() {
        document.body.style.background = 'rgb(0, ' + (frame % 200) + ', 0)';
        if (frame++ < 60) requestAnimationFrame(next); else resolve();
      })();
    })`);
    await under.evaluate('button.click()');
    await until(async () => isRed(await quick.colour(GROUND))).toBe(true);
    expect(pictures.length).toBeLessThanOrEqual(3);
    expect(Math.max(...[...session.sinks].map((sink) => sink.bufferedAmount))).toBeLessThan(1024 * 1024);

    // Now it draws, and what it sees last is what there is.
    const seen = pictures.length;
    for (let i = 0; i < seen; i++) slow.send('{"type":"ack"}');
    slow.on('message', (_, isBinary) => isBinary && slow.send('{"type":"ack"}'));
    await until(() => pictures.length).toBeGreaterThan(seen);
    const last = async () => {
      const source = `data:image/jpeg;base64,${pictures.at(-1)!.toString('base64')}`;
      return quick.page.evaluate(`(async () => {
        const image = new Image();
        image.src = '${source}';
        await image.decode();
        const canvas = new OffscreenCanvas(image.width, image.height);
        const context = canvas.getContext('2d');
        context.drawImage(image, 0, 0);
        return [...context.getImageData(${GROUND.x}, ${GROUND.y}, 1, 1).data];
      })()`) as Promise<number[]>;
    };
    await until(async () => isRed(await last())).toBe(true);
    slow.close();
  });
});

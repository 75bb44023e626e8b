/* oxlint-disable vitest/expect-expect -- `until` expects */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { WebSocket } from 'ws';
import { isCreated } from '../../src/chromium/cdp/shapes.ts';
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
import { closesTabs, drawsPopups, followsTabs } from '../support/live-view-tabs.ts';

const { open } = viewing();

describe('the screencast', () => {
  let session: Watched;
  let under: PageUnderTest;
  const here = () => ({ session, under });

  beforeAll(async () => {
    session = await watched({ headless: true });
    under = await firstPage(session);
  });
  afterAll(() => session?.stop());
  beforeEach(async () => {
    await under.setContent(html);
    await under.evaluate(script);
  });

  closesTabs(here);

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

  followsTabs(open, here);
  drawsPopups(open, here);

  test('offers menu items for the place, and performs them', async () => {
    await under.evaluate(`document.body.insertAdjacentHTML('beforeend',
      '<a href="https://linked.test/" style="position:absolute;left:100px;top:300px">A link</a>')`);
    const view = await open(session, under);
    const popup = view.page.locator('#popup');
    const items = popup.getByRole('menuitem');
    const choose = async (place: { x: number; y: number }, item: string, offered: string[]) => {
      await view.click(place, 'right');
      await until(() => items.allInnerTexts()).toEqual(offered);
      await popup.getByRole('menuitem', { name: item, exact: true }).click();
    };
    const copied = () => view.page.evaluate('navigator.clipboard.readText()');
    const value = () => under.evaluate('field.value');
    const text = { x: 105, y: 115 };
    const onText = ['Paste', 'Select all'];
    const onSelected = ['Cut', 'Copy', ...onText];

    await choose({ x: 105, y: 308 }, 'Copy link address', ['Open link in new tab', 'Copy link address', 'Select all']);
    await until(copied).toBe('https://linked.test/');
    await choose(text, 'Paste', onText);
    await until(value).toBe('https://linked.test/');
    await choose(text, 'Select all', onText);
    await until(() => under.evaluate('field.selectionEnd - field.selectionStart')).toBe(20);
    await view.page.evaluate(`navigator.clipboard.writeText('')`);
    await choose(text, 'Copy', onSelected);
    await until(copied).toBe('https://linked.test/');
    await view.page.evaluate(`navigator.clipboard.writeText('')`);
    await choose(text, 'Cut', onSelected);
    await until(copied).toBe('https://linked.test/');
    await until(value).toBe('');

    const onGround = ['Select all', 'Back', 'Forward', 'Reload'];
    await under.evaluate(`history.pushState(1, '')`);
    await choose(GROUND, 'Back', onGround);
    await until(() => under.evaluate('history.state')).toBe(null);
    await choose(GROUND, 'Forward', onGround);
    await until(() => under.evaluate('history.state')).toBe(1);
    await under.evaluate('window.old = true');
    await choose(GROUND, 'Reload', onGround);
    await until(() => under.evaluate('window.old')).toBeUndefined();
  });

  test('takes the shortcuts of a window, and says why a page did not load', async () => {
    const view = await open(session, under, '&header=true');
    await view.click(GROUND);
    await view.press('t', 'Control');
    await until(view.shown).toBe('New tab');
    await session.pages(); // what the viewer says now is for that tab
    await view.page.locator('#address').fill('http://none.test:1/'); // a port that Chromium never asks
    await view.page.keyboard.press('Enter');
    await until(() => view.page.locator('#notice').innerText()).toBe(
      'The page did not load. The request failed: ERR_UNSAFE_PORT.',
    );
    await until(() => view.page.locator('#address').inputValue()).toBe('http://none.test:1/');
    await view.page.locator('#address').fill('two words');
    await view.page.keyboard.press('Enter');
    await until(() => view.page.locator('#address').inputValue()).toBe('http://search.test/?q=two%20words');
    await view.press('l', 'Control');
    await view.page.keyboard.type('data:text/html,<title>Next</title>');
    await view.page.keyboard.press('Enter');
    await until(view.shown).toBe('Next');
    await until(() => view.page.locator('#back').isEnabled()).toBe(true);
    await view.press('ArrowLeft', 'Alt');
    await until(() => view.page.locator('#address').inputValue()).toBe('http://search.test/?q=two%20words');
    await view.page.locator('#keyboard').focus();
    await view.press('w', 'Control');
    await until(view.shown).toBe('Under test');
    for (const [key, held] of [['F5'], ['r', 'Control']] as const) {
      await under.evaluate('window.old = true');
      await view.press(key, held);
      await until(() => under.evaluate('window.old')).toBeUndefined();
    }
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

  test('copies the text that the page itself puts into the clipboard on Ctrl+C, and from a frame', async () => {
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

  test('ignores messages that a raw viewer may not send', async () => {
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

  test('encodes a tab once for all its viewers, until the last of them leaves or the tab is closed', async () => {
    /** A viewer that draws at once, always at one quality, and stays on the tab that it wants. */
    const watching = async () => {
      let socket!: WebSocket;
      const say = (message: object) => socket.send(JSON.stringify(message));
      const viewer = {
        pictures: 0,
        wants: under.targetId,
        show(id: string) {
          viewer.wants = id;
          say({ type: 'selectTab', id });
        },
        close: () => socket.close(),
      };
      await raw(session, '', (opening) => {
        socket = opening;
        socket.on('message', (data: Buffer, isBinary) => {
          if (isBinary) {
            viewer.pictures += 1;
            return say({ type: 'ack' });
          }
          const { type, shown } = JSON.parse(data.toString()) as { type: string; shown?: string };
          if (type === 'tabs' && shown !== viewer.wants) say({ type: 'selectTab', id: viewer.wants });
        });
      });
      say({ type: 'quality', level: 'high' });
      say({ type: 'follow', on: false });
      return viewer;
    };
    const casts = () => until(() => session.casts.count);
    const first = await watching();
    await until(() => first.pictures).toBeGreaterThan(0);
    const [second, third] = [await watching(), await watching()]; // the page is still, and there is a picture
    await until(() => second.pictures > 0 && third.pictures > 0).toBe(true);
    await casts().toBe(1);

    first.close();
    await until(() => session.sinks.size).toBe(2);
    const before = [second.pictures, third.pictures] as const;
    await under.evaluate('button.click()');
    await until(() => second.pictures > before[0] && third.pictures > before[1]).toBe(true);

    const other = await session.cdp.ask(isCreated, 'Target.createTarget', { url: 'data:text/html,another' });
    third.show(other.targetId);
    await casts().toBe(2);
    third.wants = under.targetId; // when the tab is closed
    await session.cdp.send('Target.closeTarget', other);
    await casts().toBe(1);
    second.close();
    third.close();
    await casts().toBe(0);
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

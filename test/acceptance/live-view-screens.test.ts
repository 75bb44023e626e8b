/* oxlint-disable vitest/expect-expect -- `until` expects */
import { once } from 'node:events';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { WebSocket } from 'ws';
import { isCreated, isTargetList } from '../../src/chromium/cdp/shapes.ts';
import { record } from '../../src/lib/shape.ts';
import { firstPage, pageAt, viewers, watched, type PageUnderTest, type Watched } from '../support/live-view.ts';
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
const { open, close } = opener(() => looking.browser);

beforeAll(async () => {
  looking = await viewers();
});
afterAll(() => looking?.stop());
afterEach(close);

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
    const { targetInfos } = await session.cdp.ask(isTargetList, 'Target.getTargets');
    for (const { type, targetId } of targetInfos)
      if (type === 'page' && targetId !== under.targetId) await session.cdp.send('Target.closeTarget', { targetId });
  });

  const urlOf = async (targetId: string) => {
    const { targetInfos } = await session.cdp.ask(isTargetList, 'Target.getTargets');
    return targetInfos.find((info) => info.targetId === targetId)?.url;
  };

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
    await view.page.locator(`[data-id="${targetId}"] .close`).click();
    await until(names).toEqual(['Under test']);

    await view.page.locator('#new-tab').click();
    await until(names).toEqual(['Under test', 'New tab']);
    await view.page.locator('#address').fill('data:text/html,<title>Third</title>');
    await view.page.keyboard.press('Enter');
    await until(names).toEqual(['Under test', 'Third']);
    await until(() => view.page.locator('#back').isEnabled()).toBe(true);
    await view.page.locator('.tab[data-shown] .close').click();
    await until(names).toEqual(['Under test']);
    await until(() => view.page.locator('.tab[data-shown]').count()).toBe(1);
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

  test('shows dialogs, and takes their answers', async () => {
    const view = await open(session, under);
    const answer = under.evaluate(`prompt('Your name?', 'nobody')`);
    await until(() => view.page.locator('#dialog-message').innerText()).toBe('Your name?');
    await view.page.locator('#dialog-text').fill('somebody');
    await view.page.locator('#dialog-accept').click();
    expect(await answer).toBe('somebody');
    const confirmed = under.evaluate(`confirm('Sure?')`);
    await view.page.locator('#dialog-cancel').click();
    expect(await confirmed).toBe(false);
    await view.click(FIELD);
    await view.page.keyboard.type('on');
    await until(() => under.evaluate('field.value')).toBe('on');
  });

  test('holds up nobody’s dialog only to watch', async () => {
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

  test('lets another client work as if nobody looked', async () => {
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

    const hands = await raw(session);
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
    // Its first picture says that there is a tab to write to.
    hands.once('message', function write(_: Buffer, isBinary: boolean) {
      if (isBinary) hands.send(JSON.stringify({ type: 'text', text: 'only this' }));
      else hands.once('message', write);
    });
    await until(() => under.evaluate('field.value')).toBe('only this');
    expect(await under.evaluate('seen')).toEqual([]);
    expect(await urlOf(under.targetId)).toBe('about:blank');
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
    misbehave(socket);
    const [closedWith] = await once(socket, 'close');
    expect(closedWith).toBe(code);
    // Viewers of the tests before may still be leaving when this one comes.
    await until(() => session.mux.clientCount).toBeLessThanOrEqual(before);
  });

  test('sends a slow viewer no more than it draws, and the last picture in the end', async () => {
    const slow = await raw(session);
    const pictures: Buffer[] = [];
    slow.on('message', (data: Buffer, isBinary) => isBinary && pictures.push(data));
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
    const socket = await raw(session, query);
    const parts: Buffer[] = [];
    socket.on('message', (data: Buffer) => parts.push(data));
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

  test('takes no key of a raw viewer who only watches', async () => {
    const before = String(await under.evaluate('field.focus(), field.value'));
    const watching = await greeted(READ_ONLY);
    watching.send(Buffer.concat([keyDown('q'), keyUp('q')]));
    const hands = await greeted();
    hands.send(Buffer.concat([keyDown('h'), keyUp('h')]));
    await until(() => under.evaluate('field.value')).toBe(`${before}h`);
    watching.send(Buffer.from([99]));
    const [code] = await once(watching, 'close');
    expect(code).toBe(1008);
    hands.close();
  });

  test('does not read from the display what a viewer does not take', async () => {
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

/* oxlint-disable vitest/expect-expect -- `until` expects */
import { once } from 'node:events';
import type { BrowserContext, CDPSession, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { isCreated, isTargetList } from '../../src/chromium/cdp/shapes.ts';
import { record } from '../../src/lib/shape.ts';
import { firstPage, pageAt, viewers, watched, type PageUnderTest, type Watched } from '../support/live-view.ts';

const html = `<title>Under test</title>
<body style="margin:0;height:3000px;background:#ffffff;font:16px sans-serif">
<input id="field" style="position:absolute;left:100px;top:100px;width:300px;height:30px">
<button id="button" style="position:absolute;left:100px;top:200px;width:120px;height:40px">Colour</button>`;
const script = `
  scrollTo(0, 0);
  window.seen = [];
  button.onclick = () => (document.body.style.background = '#ff0000');
  for (const name of ['keydown', 'paste', 'copy', 'mousedown', 'click', 'wheel'])
    addEventListener(name, (event) => seen.push(name + (event.key ? ' ' + event.key : '')), true);`;

const FIELD = { x: 150, y: 115 };
const BUTTON = { x: 150, y: 220 };
/** Where the page shows nothing but its background. */
const GROUND = { x: 600, y: 400 };
const READ_ONLY = '&readOnly=true';

let looking: Awaited<ReturnType<typeof viewers>>;
const contexts: BrowserContext[] = [];

beforeAll(async () => {
  looking = await viewers();
});
afterAll(() => looking?.stop());
afterEach(async () => {
  await Promise.all(contexts.splice(0).map((context) => context.close()));
});

/** No test is about time: whatever comes, comes in the end. */
function until<T>(what: () => T) {
  return expect.poll(what, { timeout: 20_000 });
}

interface View {
  page: Page;
  cdp: CDPSession;
  /** Where in the view a place of the session's page is. */
  at(place: { x: number; y: number }): Promise<{ x: number; y: number }>;
  click(place: { x: number; y: number }): Promise<void>;
  /** Red, green and blue of the picture. */
  colour(place: { x: number; y: number }): Promise<number[]>;
  state(): Promise<string | null>;
}

async function open(session: Watched, under: PageUnderTest, query = ''): Promise<View> {
  const context = await looking.browser.newContext({ viewport: { width: 1200, height: 850 } });
  contexts.push(context);
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  const page = await context.newPage();
  await page.goto(session.url + query);
  const state = () => page.locator('html').getAttribute('data-state');
  await until(state).toBe('connected');
  const canvas = page.locator('canvas:visible');

  /** In pixels of the picture: the whole window, where there is one. */
  async function inPicture({ x, y }: { x: number; y: number }) {
    if (session.browser.kind !== 'headful') return { x, y };
    const [left, top] = (await under.evaluate('[outerWidth - innerWidth, outerHeight - innerHeight]')) as number[];
    return { x: x + left!, y: y + top! };
  }
  const at: View['at'] = async (place) => {
    const { x, y } = await inPicture(place);
    const box = (await canvas.boundingBox())!;
    const scale = box.width / Number(await canvas.getAttribute('width'));
    return { x: box.x + x * scale, y: box.y + y * scale };
  };
  return {
    page,
    cdp: await context.newCDPSession(page),
    at,
    state,
    async click(place) {
      const { x, y } = await at(place);
      await page.mouse.click(x, y);
    },
    async colour(place) {
      const { x, y } = await inPicture(place);
      const read = `[...document.querySelector('canvas:not([hidden])').getContext('2d').getImageData(${x}, ${y}, 1, 1).data]`;
      const target = (await page.locator('#screen').isVisible()) ? read : read.replace('canvas:', '#display canvas:');
      return ((await page.evaluate(target)) as number[]).slice(0, 3);
    },
  };
}

function isRed(colour: number[]): boolean {
  return colour[0]! > 200 && colour[1]! < 60 && colour[2]! < 60;
}

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
    const context = await looking.browser.newContext();
    contexts.push(context);
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
      ['a viewer who closes the page', () => contexts.splice(0)[0]!.close()],
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

/** A viewer with nothing between the test and the wire. */
async function raw(session: Watched, query = ''): Promise<WebSocket> {
  const socket = new WebSocket(session.socketUrl + query, { perMessageDeflate: false });
  await once(socket, 'open');
  return socket;
}

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
    await until(() => session.mux.clientCount).toBe(before);
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

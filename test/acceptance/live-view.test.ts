/* oxlint-disable vitest/expect-expect -- `until` expects */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { signal, tree } from '../../src/chromium/sandbox/process-tree.ts';
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
  type View,
} from '../support/live-view-page.ts';
import { bytesPerPixel, qualities } from '../support/live-view-quality.ts';
import { closesTabs, drawsPopups, followsTabs, followsTheFront } from '../support/live-view-tabs.ts';
import { isolationHere } from '../support/sandbox.ts';

const isolation = await isolationHere();
const { newContext, open, close } = viewing();

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

  /** The same service, page of the viewer and protocol as with the small browser, whose cases are enough. */
  const repeated = headless && full;
  const value = () => under.evaluate('field.value');
  const clients = () => session.mux.clientCount;
  /** The wheel turns many times, and slowly. What has not turned yet would scroll the page of the next test. */
  const scrolled = () =>
    until(() =>
      under.evaluate(
        'new Promise((resolve) => { const at = scrollY; setTimeout(() => resolve(scrollY === at), 1000); })',
      ),
    ).toBe(true);

  /** All that the view says of its connection from now on, also what it says for a moment. */
  const statesOf = async ({ page }: View) => {
    await page.evaluate(`window.said = []; new MutationObserver(() => said.push(document.getElementById('state').innerText))
      .observe(document.documentElement, { attributes: true })`);
    return () => page.evaluate('said.join()');
  };

  test('shows a page that does not change, and then every change', async () => {
    const view = await open(session, under);
    await until(() => view.colour(GROUND)).toEqual([255, 255, 255]);
    await view.click(BUTTON);
    await until(async () => isRed(await view.colour(GROUND))).toBe(true);
    const loaded = `performance.getEntriesByType('resource').map(({ name }) => new URL(name).pathname.replace(/.*[.]/, ''))`;
    expect(await view.page.evaluate(loaded)).toEqual(
      expect.toSatisfy((all: string[]) => all.toSorted().join() === 'css,js'),
    );
  });

  test('shows what a page draws with WebGL, without a card', async () => {
    const view = await open(session, under);
    await until(() => view.colour(GROUND)).toEqual([255, 255, 255]);
    await under.evaluate(`(() => {
      const canvas = document.body.appendChild(document.createElement('canvas'));
      canvas.style = 'position: fixed; inset: 0; width: 100%; height: 100%';
      const gl = canvas.getContext('webgl2');
      gl.clearColor(1, 0, 0, 1);
      gl.clear(gl.COLOR_BUFFER_BIT);
    })()`);
    await until(async () => isRed(await view.colour(GROUND))).toBe(true);
  });

  // The small browser's are in live-view-screens.test.ts.
  describe.runIf(headless && full)('tabs and popups', () => {
    const here = () => ({ session, under });
    closesTabs(here);
    followsTabs(open, here);
    followsTheFront(open, here);
    drawsPopups(open, here);
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
    await scrolled();
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

  test.skipIf(repeated)('pastes from the panel, where the clipboard may not be read', async () => {
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

  test.skipIf(repeated)('is seen and used by two at once', async () => {
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

  const PHONE = { viewport: { width: 390, height: 700 }, hasTouch: true, isMobile: true };

  test.skipIf(repeated)('is read and used on a phone', async () => {
    const view = await open(session, under, '', PHONE);
    const canvas = view.page.locator('#stage canvas:visible');
    const width = async () => (await canvas.boundingBox())!.width;
    const touch = (type: 'touchStart' | 'touchMove' | 'touchEnd', ...touchPoints: { x: number; y: number }[]) =>
      view.cdp.send('Input.dispatchTouchEvent', { type, touchPoints });
    /** Two fingers, this far from the place between them. */
    const fingers = ({ x, y }: { x: number; y: number }, apart: number) =>
      [-apart, apart].map((right, id) => ({ x: x + right, y, id }));

    const small = 390;
    await until(width).toBe(small);
    await until(() => view.page.locator('.names').innerText()).toMatch(/^A <session>\s+Under test$/);
    const inView = async (id: string) => {
      const { x, width } = (await view.page.locator(id).boundingBox())!;
      return x >= 0 && width > 50 && x + width <= small;
    };
    expect([await inView('#title'), await inView('#page-title')]).toEqual([true, true]);
    const middle = await view.at(FIELD);
    await touch('touchStart', ...fingers(middle, 20));
    for (const apart of [30, 40, 50, 60]) await touch('touchMove', ...fingers(middle, apart));
    await touch('touchEnd');
    await until(width).toBeCloseTo(small * 3, -1);
    await until(async () => Math.abs((await view.at(FIELD)).x - middle.x)).toBeLessThan(10);
    await until(() => canvas.getAttribute('width')).toBe('1000'); // it gets the pixels that it lacked
    const start = await view.at(FIELD);
    await touch('touchStart', ...fingers(middle, 20));
    for (const by of [10, 20, 30, 40]) await touch('touchMove', ...fingers({ x: middle.x + by, y: middle.y - by }, 20));
    await touch('touchEnd');
    const tens = async () => {
      const { x, y } = await view.at(FIELD);
      return [x - start.x, y - start.y].map((by) => Math.round(by / 10));
    };
    await until(tens).toEqual([4, -4]);
    const field = await view.at(FIELD);
    expect(await width()).toBeCloseTo(small * 3, -1);
    expect(await under.evaluate('seen')).toEqual([]);

    await view.page.touchscreen.tap(field.x, field.y);
    await until(() => under.evaluate('document.activeElement.id')).toBe('field');
    const keyboard = view.page.locator('#keyboard');
    expect(await keyboard.getAttribute('inputmode')).toBe('none'); // or every tap would cover half of the page
    await view.page.getByRole('button', { name: 'Keyboard on the screen' }).tap();
    await until(() => keyboard.getAttribute('inputmode')).toBe('text'); // the click comes after the fingers' events
    await view.page.keyboard.insertText('by thumb');
    await until(value).toBe('by thumb');

    await view.page.locator('#picture-button').tap();
    await view.page.locator('#picture-size').selectOption('fit');
    await until(width).toBe(small);
    await view.page.locator('#picture-size').selectOption('actual');
    await until(width).toBe(1000);
    const [low, high] = [await bytesPerPixel(view, under, 'low'), await bytesPerPixel(view, under, 'high')];
    expect(low / high).toBeGreaterThan(0);
    expect(low / high).toBeLessThan(0.7);
    await view.page.locator('#picture-button').tap();
    await until(() => view.page.locator('#picture').isVisible()).toBe(false);
    const swipe = { x: 200, y: 500, id: 0 };
    await touch('touchStart', swipe);
    for (const up of [60, 120, 180, 240]) await touch('touchMove', { ...swipe, y: swipe.y - up });
    await touch('touchEnd');
    await until(() => under.evaluate('scrollY')).toBeGreaterThan(0);
    if (!headless) {
      await under.evaluate(`for (const name of ['mousedown', 'mouseup'])
        addEventListener(name, ({ button, clientX }) => seen.push([name, button, clientX].join(' ')), true); seen = []`);
      const rested = `window.rested = new Promise((resolve) => addEventListener('gesturestart',
        ({ detail }) => detail.type === 'longpress' && resolve(true), true))`;
      await view.page.evaluate(`void (${rested})`);
      await touch('touchStart', swipe);
      expect(await view.page.evaluate('rested')).toBe(true);
      for (const left of [20, 60, 100]) await touch('touchMove', { ...swipe, x: swipe.x - left });
      await touch('touchEnd');
      const words = async () => ((await under.evaluate('seen')) as string[]).filter((word) => /^mouse.* /.test(word));
      await until(async () => (await words()).map((word) => word.split(' ').slice(0, 2).join(' '))).toEqual([
        'mousedown 0',
        'mouseup 0',
      ]);
      const [down, up] = (await words()).map((word) => Number(word.split(' ')[2]));
      expect(down! - up!).toBeCloseTo(100, -1); // the picture has the page's own size
    }
    await scrolled();
  });

  test.skipIf(!headless)('says why a page did not load, for loads by pages, clients and viewers', async () => {
    const view = await open(session, under);
    const notice = () => view.page.locator('#notice').innerText();
    await session.cdp.send('Page.navigate', { url: 'https://driver.test:6000/' }, under.sessionId); // not even asked for
    await until(notice).toBe('https://driver.test:6000/ did not load. The request failed: ERR_UNSAFE_PORT.');
    await under.setContent(html);
    await under.evaluate(`button.onclick = () => (location.href = 'http://link.test/')`);
    await view.click(BUTTON);
    await until(notice).toBe('http://link.test/ did not load. The name could not be resolved.');
    await session.cdp.send('Page.navigate', { url: 'https://driver.test/' }, under.sessionId);
    await until(notice).toBe('https://driver.test/ did not load. The name could not be resolved.');
    await view.page.locator('#address').fill('https://viewer.test/');
    await view.page.keyboard.press('Enter');
    await until(notice).toBe('The page did not load. The name could not be resolved.');
    await session.cdp.send('Page.navigate', { url: 'about:blank' }, under.sessionId);
    await until(() => under.evaluate('location.href')).toBe('about:blank');
  });

  test.skipIf(repeated)('ignores input of a read-only viewer', async () => {
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

  test.skipIf(repeated)('admits no other client, and says when the link has expired', async () => {
    const view = await open(session, under);
    session.answers.status = 401;
    for (const sink of session.sinks) sink.close(1012, 'The browser crashed.');
    await until(view.state).toBe('expired');
    session.answers.status = 200;
  });

  test.skipIf(repeated)('comes back when the browser restarts', async () => {
    const view = await open(session, under);
    const said = await statesOf(view);
    for (const sink of session.sinks) sink.close(1012, 'It crashed.');
    await until(said).toContain('The browser restarts…');
    await until(view.state).toBe('connected');
    await view.click(FIELD);
    await view.page.keyboard.type('back');
    await until(value).toBe('back');
  });

  test.skipIf(repeated)('notices that the network is lost, and that it is back', async () => {
    const view = await open(session, under);
    const asked = await qualities(view);
    const said = await statesOf(view);
    for (const connection of session.connections) connection.cork();
    await until(said).toContain('The connection is lost.'); // it is silent, and not given up: heartbeat.test.ts has the seconds
    await until(view.state).toBe('reconnecting');
    for (const connection of session.connections) connection.uncork();
    await until(view.state).toBe('connected');
    if (!headless) await until(() => asked).toContain(0); // the automatic quality has fallen
    await view.click(FIELD);
    await view.page.keyboard.type('again');
    await until(value).toBe('again');
  });

  test.skipIf(repeated)('works in a frame of another page', async () => {
    const context = await newContext();
    const page = await context.newPage();
    await page.goto(session.url.replace('127.0.0.1', 'localhost').replace('/base/', '/elsewhere/'));
    await page.setContent(`<iframe src="${session.url.replaceAll('&', '&amp;')}" width="900" height="600"></iframe>`);
    const frame = page.frameLocator('iframe');
    await until(() => frame.locator('html').getAttribute('data-state')).toBe('connected');
    await frame.locator('#stage canvas:visible').click();
    await page.keyboard.type('x');
    await until(() => under.evaluate('seen.join()')).toContain('keydown x');
  });

  const windowManagers = () =>
    tree(process.pid).filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/comm`, 'utf8') === 'openbox\n';
      } catch {
        return false; // ended meanwhile
      }
    });

  const place = '[screenX, screenY, outerWidth, outerHeight, innerWidth, innerHeight]';

  test.skipIf(headless)('fills its picture with a page that is in full screen', async ({ skip }) => {
    if (!isolation.windowManager) skip('there is no window manager on this machine');
    const main = await under.evaluate(place);
    const view = await open(session, under);
    const corners = [1, 998].flatMap((x) => [1, 698].map((y) => ({ x, y })));
    const reds = async () => (await Promise.all(corners.map(view.pixel))).filter(isRed).length;
    await under.evaluate(`document.body.style = 'background: red; overflow: hidden'`);
    const full = `document.documentElement.requestFullscreen().then(() => true)`;
    await session.cdp.send('Runtime.evaluate', { expression: full, userGesture: true }, under.sessionId);
    await until(() => under.evaluate('[innerWidth, innerHeight]')).toEqual([1000, 700]);
    await until(reds).toBe(4);
    await under.evaluate('document.exitFullscreen()');
    await until(() => under.evaluate(place)).toEqual(main);
    await until(reds).toBe(2); // the browser's bars are back
  });

  test.skipIf(headless)(
    'frames popups, which keep their size, and nothing else, also after its window manager died',
    async ({ skip }) => {
      if (!isolation.windowManager) skip('there is no window manager on this machine');
      expect(session.browser.windowSize).toEqual({ width: 1000, height: 700 });
      const main = (await under.evaluate(place)) as number[];
      expect(main.slice(0, 5)).toEqual([0, 0, 1000, 700, 1000]);
      const view = await open(session, under);
      const box = (await view.page.locator('canvas:visible').boundingBox())!;
      const mouse = (x: number, y: number) => [box.x + x * (box.width / 1000), box.y + y * (box.width / 1000)] as const;
      const openPopup = (at: string) => under.evaluate(`void (window.popup = open('about:blank', '', 'popup,${at}'))`);
      const popup = () => under.evaluate('[popup.screenX, popup.screenY, popup.innerWidth, popup.innerHeight]');
      const near = (numbers: unknown, wanted: number[]) =>
        wanted.map((number, i) => Math.abs((numbers as number[])[i]! - number) < 30);
      const bars = main[3]! - main[5]!;
      const titleBar = async () => {
        const [x, y] = (await popup()) as [number, number];
        return view.colour({ x: x + 100, y: y - 8 - bars });
      };

      const [killed] = windowManagers();
      signal(killed!, 'SIGKILL');
      await until(() => windowManagers().filter((pid) => pid !== killed).length).toBe(1);
      // It is a process before it manages windows, and a popup of that time gets no frame: another one is opened then.
      await until(async () => {
        await openPopup(`left=500,top=${GROUND.y + bars},width=300,height=150`);
        try {
          await expect.poll(titleBar, { timeout: 5000 }).not.toEqual([255, 255, 255]);
          return true;
        } catch {
          return false;
        } finally {
          await under.evaluate('popup.close()');
        }
      }).toBe(true);
      await until(() => under.evaluate('popup.closed')).toBe(true);
      expect(await under.evaluate(place)).toEqual(main);

      await openPopup('left=200,top=150,width=400,height=300');
      await until(async () => near(await popup(), [200, 150, 400, 300])).toEqual([true, true, true, true]);
      await until(titleBar).not.toEqual([255, 255, 255]);
      const [x, y] = (await popup()) as [number, number];
      await view.page.mouse.move(...mouse(x + 100, y - 8)); // its title bar
      await view.page.mouse.down();
      await view.page.mouse.move(...mouse(x + 150, y + 42));
      // That begins the drag, but moves that come together are one. So the mouse moves until the popup has followed.
      await until(async () => {
        await view.page.mouse.move(...mouse(x + 199, y + 92));
        await view.page.mouse.move(...mouse(x + 200, y + 92));
        return near(await popup(), [x + 100, y + 100, 400, 300]);
      }).toEqual([true, true, true, true]);
      await view.page.mouse.up();
      await view.click(GROUND); // the window below stays below
      // The last moves of the drag may take effect after its place was read, so each attempt reads it again.
      await until(async () => {
        if (await under.evaluate('popup.closed')) return true;
        const [left, top] = (await popup()) as [number, number];
        await view.page.mouse.click(...mouse(left + 400 - 9, top - 9));
        return under.evaluate('popup.closed');
      }).toBe(true);
      expect(await under.evaluate(place)).toEqual(main);
    },
  );

  describe.skipIf(repeated)('leaves nothing behind', () => {
    const sockets = () => process.getActiveResourcesInfo().filter((kind) => kind === 'PipeWrap').length;
    /** Taken when the viewers of the test before have left. What they held may go a moment later, so less than this is no fault. */
    const before = async () => {
      await until(() => session.sinks.size).toBe(0);
      return [clients(), sockets()] as const;
    };
    const nothingIsLeft = (most: readonly [number, number]) =>
      until(() => [session.sinks.size, session.casts.count, clients() <= most[0], sockets() <= most[1]]).toEqual([
        0,
        0,
        true,
        true,
      ]);

    test.each<[string, () => unknown]>([
      ['a viewer who closes the page', close],
      ['a service that ends the connection', () => session.sinks.forEach((sink) => sink.close(1001, 'Enough.'))],
    ])('%s', async (_, leave) => {
      const most = await before();
      await open(session, under);
      await leave();
      await nothingIsLeft(most);
    });

    test('a viewer that vanishes, and a viewer that sends nothing', async () => {
      const most = await before();
      const [silent, vanishing] = [await raw(session), await raw(session)];
      vanishing.terminate();
      silent.close();
      await nothingIsLeft(most);
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
    await until(() => [session.sinks.size, session.casts.count]).toEqual([0, 0]);
    let late!: Promise<number>;
    await raw(session, '', (socket) => (late = closeCode(socket)));
    await late;
  });
});

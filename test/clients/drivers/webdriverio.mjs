import protocol from 'webdriver';
import { remote } from 'webdriverio';

export default [
  {
    name: 'webdriverio, BiDi',
    steps: {
      open: {
        why: 'webdriverio itself begins with commands of classic WebDriver; its protocol package (webdriver) speaks BiDi alone',
        async way(c) {
          c.browser = protocol.attachToSession({
            sessionId: c.session.session_id,
            logLevel: 'error',
            capabilities: { browserName: 'chrome', webSocketUrl: c.session.webdriver_ws_url },
          });
          await connected(c.browser);
          await c.browser.sessionNew({
            capabilities: { alwaysMatch: { unhandledPromptBehavior: { default: 'ignore' } } }, // else dialogs are dismissed
          });
          ({ context: c.context } = await c.browser.browsingContextCreate({ type: 'tab' }));
          await c.browser.browsingContextNavigate({ context: c.context, url: c.url, wait: 'complete' });
        },
      },
      click: (c) => clickOn(c, '#count'),
      async type(c) {
        await clickOn(c, '#name');
        await keys(c, c.words.name);
      },
      async select(c) {
        const { context, browser } = c;
        await browser.scriptEvaluate({
          expression: `document.querySelector('#colour').focus()`,
          target: { context },
          awaitPromise: false,
        });
        await keys(c, c.words.colour[0]);
      },
      async upload(c) {
        const element = await find(c, '#file');
        await c.browser.inputSetFiles({ context: c.context, element, files: [c.note.inSession] });
      },
      download: (c) => clickOn(c, '#report'),
      screenshot: async ({ browser, context }) =>
        Buffer.from((await browser.browsingContextCaptureScreenshot({ context })).data, 'base64'),
      pdf: async ({ browser, context }) =>
        Buffer.from((await browser.browsingContextPrint({ context })).data, 'base64'),
      async tab(c) {
        c.second = (await c.browser.browsingContextCreate({ type: 'tab' })).context;
        await c.browser.browsingContextNavigate({ context: c.second, url: c.secondUrl, wait: 'complete' });
      },
      async dialog(c) {
        const { browser, context } = c;
        await browser.browsingContextActivate({ context });
        const clicked = clickOn(c, '#ask');
        await c.until(() =>
          browser.browsingContextHandleUserPrompt({ context, accept: true }).then(
            () => true,
            () => undefined,
          ),
        );
        await clicked;
      },
      async close({ browser, context, second }) {
        await browser.browsingContextClose({ context: second });
        await browser.browsingContextClose({ context });
        hangUp(browser);
      },
    },
    end: ({ browser }) => browser && hangUp(browser),
  },
  {
    name: 'webdriverio, /session',
    makesSession: true,
    steps: {
      async open(c) {
        const { hostname, port } = new URL(c.service.url);
        c.browser = await remote({
          hostname,
          port: Number(port),
          path: '/',
          headers: { Authorization: `Bearer ${c.service.key}` },
          logLevel: 'error',
          capabilities: {
            browserName: 'chrome',
            'corral:options': { headless: true, timeout_seconds: 3600 },
          },
        });
        await c.browser.url(c.url);
      },
      click: ({ browser }) => browser.$('#count').click(),
      type: ({ browser, words }) => browser.$('#name').setValue(words.name),
      select: ({ browser, words }) => browser.$('#colour').selectByAttribute('value', words.colour),
      async upload({ browser, note }) {
        await browser.$('#file').setValue(await browser.uploadFile(note.local));
      },
      download: ({ browser }) => browser.$('#report').click(),
      screenshot: async ({ browser }) => Buffer.from(await browser.takeScreenshot(), 'base64'),
      pdf: async ({ browser }) => Buffer.from(await browser.printPage(), 'base64'),
      async tab(c) {
        c.first = await c.browser.getWindowHandle();
        await c.browser.newWindow(c.secondUrl);
      },
      async dialog({ browser, first }) {
        await browser.switchToWindow(first);
        browser.on('dialog', (dialog) => dialog.accept());
        await browser.$('#ask').click();
      },
      close: ({ browser }) => browser.deleteSession(),
    },
  },
];

async function find({ browser, context }, selector) {
  const { nodes } = await browser.browsingContextLocateNodes({ context, locator: { type: 'css', value: selector } });
  return { sharedId: nodes[0].sharedId };
}

async function clickOn(c, selector) {
  const origin = { type: 'element', element: await find(c, selector) };
  await c.browser.inputPerformActions({
    context: c.context,
    actions: [
      {
        type: 'pointer',
        id: 'mouse',
        actions: [
          { type: 'pointerMove', x: 0, y: 0, origin },
          { type: 'pointerDown', button: 0 },
          { type: 'pointerUp', button: 0 },
        ],
      },
    ],
  });
}

function keys({ browser, context }, text) {
  const actions = [...text].flatMap((value) => [
    { type: 'keyDown', value },
    { type: 'keyUp', value },
  ]);
  return browser.inputPerformActions({ context, actions: [{ type: 'key', id: 'keyboard', actions }] });
}

/* A connection without a session of classic WebDriver has no public verbs for its beginning and its end. */
/* oxlint-disable no-underscore-dangle */

async function connected(browser) {
  if (!(await browser._bidiHandler.waitForConnected())) throw new Error('no connection');
}

function hangUp(browser) {
  browser._bidiHandler.close();
}

import CDP from 'chrome-remote-interface';

export default [
  {
    name: 'chrome-remote-interface',
    steps: {
      async open(c) {
        const [target] = await (await fetch(`${c.session.base_url}/json/list`)).json();
        c.client = await CDP({ target: target.webSocketDebuggerUrl, local: true });
        const { Page, Runtime, DOM } = c.client;
        await Promise.all([Page.enable(), Runtime.enable(), DOM.enable()]);
        const loaded = Page.loadEventFired();
        await Page.navigate({ url: c.url });
        await loaded;
      },
      click: ({ client }) => clickOn(client, '#count'),
      async type({ client, words }) {
        await evaluate(client, `document.querySelector('#name').focus()`);
        await client.Input.insertText({ text: words.name });
      },
      async select({ client, words }) {
        await evaluate(client, `document.querySelector('#colour').focus()`);
        for (const type of ['keyDown', 'keyUp'])
          await client.Input.dispatchKeyEvent({
            type,
            key: words.colour[0],
            text: type === 'keyDown' ? words.colour[0] : '',
          });
      },
      async upload({ client, note }) {
        const { result } = await client.Runtime.evaluate({ expression: `document.querySelector('#file')` });
        await client.DOM.setFileInputFiles({ files: [note.inSession], objectId: result.objectId });
      },
      download: ({ client }) => clickOn(client, '#report'),
      screenshot: async ({ client }) => Buffer.from((await client.Page.captureScreenshot()).data, 'base64'),
      pdf: async ({ client }) => Buffer.from((await client.Page.printToPDF()).data, 'base64'),
      async tab(c) {
        const answer = await fetch(`${c.session.base_url}/json/new?${encodeURIComponent(c.secondUrl)}`, {
          method: 'PUT',
        });
        c.second = await answer.json();
      },
      async dialog({ client }) {
        await client.Page.bringToFront();
        const opening = client.Page.javascriptDialogOpening();
        const clicked = clickOn(client, '#ask');
        await opening;
        await client.Page.handleJavaScriptDialog({ accept: true });
        await clicked;
      },
      async close(c) {
        const answer = await fetch(`${c.session.base_url}/json/close/${c.second.id}`);
        if (!answer.ok) throw new Error(await answer.text());
        await c.client.close();
      },
    },
  },
];

async function evaluate({ Runtime }, expression) {
  const { result, exceptionDetails } = await Runtime.evaluate({ expression, returnByValue: true });
  if (exceptionDetails) throw new Error(exceptionDetails.exception.description);
  return result.value;
}

async function clickOn(client, selector) {
  const box = `(({ x, y, width, height }) => ({ x: x + width / 2, y: y + height / 2 }))(document.querySelector('${selector}').getBoundingClientRect())`;
  const at = await evaluate(client, box);
  for (const type of ['mousePressed', 'mouseReleased'])
    await client.Input.dispatchMouseEvent({ type, ...at, button: 'left', clickCount: 1 });
}

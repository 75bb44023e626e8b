import { join } from 'node:path';
import { startMcp } from './mcp.mjs';

const bin = join(import.meta.dirname, '../node_modules/chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js');

const driver = (name, flags, more = {}) => ({
  name,
  ...more,
  steps: {
    async open(c) {
      const args = [bin, ...flags(c.session), '--no-usage-statistics', '--no-performance-crux'];
      const [command, ...words] = c.inHosts([process.execPath, ...args]);
      c.mcp = await startMcp(command, words, c);
      await c.mcp.call('new_page', { url: c.url });
      c.pageId = await pageWith(c.mcp, 'run=');
    },
    click: (c) => on(c, 'button "Count"', 'click'),
    type: (c) => on(c, 'textbox "Name"', 'fill', { value: c.words.name }),
    select: (c) => on(c, 'combobox "Colour"', 'fill', { value: 'Green' }),
    upload: {
      why: 'it looks for the file on its own disk if the service is at localhost: the session has the same file at the same path',
      way: (c) => on(c, 'button "File', 'upload_file', { filePaths: [c.note.local] }),
    },
    download: (c) => on(c, 'link "Report"', 'click'),
    screenshot: async ({ mcp, pageId }) => (await mcp.call('take_screenshot', { pageId })).image,
    pdf: { why: 'it has no tool that prints; Page.printToPDF of any CDP client on the same session does' },
    tab: ({ mcp, secondUrl }) => mcp.call('new_page', { url: secondUrl }),
    dialog: {
      why: 'a click that opens a dialog dismisses it, with any Chromium: evaluate_script takes the answer along',
      way: ({ mcp, pageId }) =>
        mcp.call('evaluate_script', {
          pageId,
          function: `() => document.querySelector('#ask').click()`,
          dialogAction: 'accept',
        }),
    },
    async close({ mcp }) {
      await mcp.call('close_page', { pageId: await pageWith(mcp, '/second') });
      await mcp.close();
    },
  },
  end: ({ mcp }) => mcp?.close(),
});

async function pageWith(mcp, part) {
  const { text } = await mcp.call('list_pages');
  const line = text.split('\n').find((each) => /^\d+:/.test(each) && each.includes(part));
  if (!line) throw new Error(`No page with ${part} among:\n${text}`);
  return Number.parseInt(line, 10);
}

/** Calls a tool on the element that the snapshot shows like this. */
async function on({ mcp, pageId }, element, tool, given = {}) {
  const { text } = await mcp.call('take_snapshot', { pageId });
  const [, uid] =
    text
      .split('\n')
      .find((line) => line.includes(element))
      ?.match(/uid=(\S+)/) ?? [];
  if (uid === undefined) throw new Error(`No ${element} in the snapshot:\n${text}`);
  return mcp.call(tool, { pageId, uid, ...given });
}

export default [
  driver('chrome-devtools-mcp', ({ cdp_ws_url }) => ['--wsEndpoint', cdp_ws_url]),
  driver('chrome-devtools-mcp, base_url', ({ base_url }) => ['--browserUrl', base_url], { hosts: true }),
];

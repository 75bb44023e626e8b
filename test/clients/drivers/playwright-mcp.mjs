import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startMcp } from './mcp.mjs';

const cli = join(import.meta.dirname, '../node_modules/@playwright/mcp/cli.js');

const driver = (name, endpoint) => ({
  name,
  steps: {
    async open(c) {
      const patience = ['--timeout-action=120000', '--timeout-navigation=120000']; // its own 5 s are short on a busy machine
      const args = [cli, '--cdp-endpoint', endpoint(c.session), '--caps=pdf', '--output-dir', c.dir, ...patience];
      c.mcp = await startMcp(process.execPath, args, c);
      await c.mcp.call('browser_navigate', { url: c.url });
    },
    click: ({ mcp }) => mcp.call('browser_click', { target: '#count' }),
    type: ({ mcp, words }) => mcp.call('browser_type', { target: '#name', text: words.name }),
    select: ({ mcp, words }) => mcp.call('browser_select_option', { target: '#colour', values: [words.colour] }),
    upload: {
      why: 'Playwright looks for the file on its own disk: the session has the same file at the same path',
      async way({ mcp, note }) {
        await mcp.call('browser_click', { target: '#file' });
        await mcp.call('browser_file_upload', { paths: [note.local] });
      },
    },
    download: ({ mcp }) => mcp.call('browser_click', { target: '#report' }),
    screenshot: async ({ mcp }) => (await mcp.call('browser_take_screenshot', { type: 'png', scale: 'css' })).image,
    async pdf({ mcp, dir }) {
      await mcp.call('browser_pdf_save', { filename: join(dir, 'page.pdf') });
      return readFile(join(dir, 'page.pdf'));
    },
    tab: ({ mcp, secondUrl }) => mcp.call('browser_tabs', { action: 'new', url: secondUrl }),
    async dialog({ mcp }) {
      const { text } = await mcp.call('browser_tabs', { action: 'list' });
      const [, index] = /(\d+):.*\[Tour\]/.exec(text) ?? [];
      await mcp.call('browser_tabs', { action: 'select', index: Number(index) });
      await mcp.call('browser_click', { target: '#ask' });
      await mcp.call('browser_handle_dialog', { accept: true });
    },
    async close({ mcp }) {
      await mcp.call('browser_close');
      await mcp.close();
    },
  },
  end: ({ mcp }) => mcp?.close(),
});

export default [
  driver('@playwright/mcp', ({ cdp_ws_url }) => cdp_ws_url),
  driver('@playwright/mcp, base_url', ({ base_url }) => base_url),
];

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { provideNode } from '../../../scripts/other-nodes.mjs';

const inspector = join(
  import.meta.dirname,
  '../node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js',
);
const corral = join(import.meta.dirname, '../../../bin/corral.cjs');

/** The inspector of the Model Context Protocol, on its command line. Each call is a client of its own, so nothing is kept between two. */
const driver = (name, target) => ({
  name,
  makesSession: true,
  steps: {
    async open(c) {
      c.target = target;
      const { tools } = await inspect(c, '--method', 'tools/list', '--strict'); // fails for schemas that some clients do not take
      if (!tools.some((tool) => tool.name === 'execute_playwright_code')) throw new Error('no tools');
      const { resources } = await inspect(c, '--method', 'resources/list');
      if (!resources.some(({ uri }) => uri === 'corral://browsers')) throw new Error('no resources');
      const [made] = await call(c, 'manage_browsers', { action: 'create', headless: true, timeout_seconds: 3600 });
      c.id = JSON.parse(made.text).session_id;
      await code(c, `await page.goto(${JSON.stringify(c.url)})`);
    },
    click: (c) => code(c, `await page.click('#count')`),
    type: (c) => code(c, `await page.fill('#name', ${JSON.stringify(c.words.name)})`),
    select: (c) => code(c, `await page.selectOption('#colour', '${c.words.colour}')`),
    upload: (c) => code(c, `await page.setInputFiles('#file', '${c.note.inSession}')`),
    download: (c) => code(c, `await page.click('#report')`),
    async screenshot(c) {
      const [image] = await call(c, 'computer_action', { session_id: c.id, action: 'screenshot' });
      return Buffer.from(image.data, 'base64');
    },
    async pdf(c) {
      const answer = await code(c, `return (await page.pdf()).toString('latin1', 0, 5)`);
      return Buffer.from(answer.result, 'latin1');
    },
    tab: (c) => code(c, `await (await context.newPage()).goto(${JSON.stringify(c.secondUrl)})`),
    dialog: (c) =>
      code(
        c,
        `const first = context.pages().find((one) => one.url() === ${JSON.stringify(c.url)});
        first.on('dialog', (dialog) => dialog.accept());
        await first.click('#ask')`,
      ),
    close: (c) => call(c, 'manage_browsers', { action: 'delete', id: c.id }),
  },
});

/** Asks by one run of the inspector, and reads what it prints. */
async function inspect(c, ...args) {
  const node = await (found ??= provideNode('24')); // the inspector needs more than the oldest Node that the service takes
  const child = spawn(node, [inspector, '--cli', ...c.target(c.service), ...args], { cwd: c.dir, env: c.env });
  let [out, err] = ['', ''];
  child.stdout.on('data', (chunk) => (out += chunk));
  child.stderr.on('data', (chunk) => (err += chunk));
  const [status] = await once(child, 'close');
  if (status !== 0) throw new Error(`exit ${status}: ${err.slice(-800)}${out.slice(-400)}`);
  return JSON.parse(out);
}
let found;

async function code(c, text) {
  const [answer] = await call(c, 'execute_playwright_code', { session_id: c.id, code: text });
  const said = JSON.parse(answer.text);
  if (!said.success) throw new Error(answer.text);
  return said;
}

async function call(c, name, given) {
  const pairs = Object.entries(given).flatMap(([key, value]) => ['--tool-arg', `${key}=${value}`]);
  const { content, isError } = await inspect(c, '--method', 'tools/call', '--tool-name', name, ...pairs);
  if (isError) throw new Error(JSON.stringify(content));
  return content;
}

export default [
  driver('MCP inspector, /mcp', ({ url, key }) => [`${url}/mcp`, '--header', `Authorization: Bearer ${key}`]),
  driver('MCP inspector, corral mcp', ({ url, key }) => [
    '-e',
    `CORRAL_URL=${url}`,
    '-e',
    `CORRAL_API_KEY=${key}`,
    process.execPath,
    corral,
    'mcp',
  ]),
];

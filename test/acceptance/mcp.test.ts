import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { corralBin } from '../support/corral-command.ts';
import { startShopSite, type ShopSite } from '../support/logins/shop-site.ts';
import { startPages, type Pages } from '../support/pages.ts';
import { startService, type Service } from '../support/service.ts';

const person = { username: 'ann', password: 'pl4nted-p4ssword' };
let pages: Pages;
let shop: ShopSite;
let service: Service;

beforeAll(async () => {
  pages = await startPages();
  shop = await startShopSite(person);
  const hosts = `${pages.host},${shop.host}`;
  service = await startService({ CORRAL_ALLOW_PRIVATE_HOSTS: hosts, CORRAL_MCP_DISABLED_TOOLSETS: 'projects' });
});
afterAll(async () => {
  await service?.close();
  await shop?.close();
  await pages?.close();
});

const overHttp = (key = service.key) =>
  new StreamableHTTPClientTransport(new URL('/mcp', service.url), {
    requestInit: { headers: { authorization: `Bearer ${key}` } },
  });
const overStdio = () =>
  new StdioClientTransport({
    command: process.execPath,
    args: [corralBin, 'mcp'],
    cwd: service.dataDir,
    env: {
      PATH: process.env['PATH']!,
      HOME: service.dataDir,
      CORRAL_URL: service.url,
      CORRAL_API_KEY: service.key,
      CORRAL_MCP_DISABLED_TOOLSETS: 'projects',
    },
  });

interface Part {
  type: string;
  text?: string;
  data?: string;
  mimeType?: string;
}

async function connect(transport: Transport) {
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(transport);
  /** Everything that the model received. */
  const heard: string[] = [];
  const call = async (name: string, args: Record<string, unknown> = {}) => {
    const { content, isError } = await client.callTool({ name, arguments: args }, undefined, { timeout: 110_000 });
    const text = (content as Part[]).map((part) => part.text ?? '').join('\n');
    heard.push(text);
    return { parts: content as Part[], text, isError };
  };
  /** The answer of a tool that worked, as JSON. */
  // oxlint-disable-next-line typescript/no-explicit-any -- each test judges what it gets
  const json = async (name: string, args: Record<string, unknown> = {}): Promise<any> => {
    const { parts, text, isError } = await call(name, args);
    expect(isError, text).toBeFalsy();
    return JSON.parse(parts[0]!.text!);
  };
  return { client, call, json, heard };
}

describe.each([
  ['Streamable HTTP', () => overHttp()],
  ['stdio', overStdio],
])('over %s', (way, open) => {
  test('an agent makes a session, works in it and ends it', async () => {
    const { client, call, json } = await connect(open());
    try {
      const { tools } = await client.listTools();
      const names = tools.map(({ name }) => name);
      expect(names).toEqual(expect.arrayContaining(['manage_browsers', 'manage_auth_connections', 'computer_action']));
      expect(names).not.toContain('manage_projects'); // switched off
      for (const { name, inputSchema } of tools)
        for (const [field, one] of Object.entries(inputSchema.properties ?? {}))
          expect(one, `${name}: ${field}`).toMatchObject(
            'anyOf' in one ? {} : { type: expect.anything() }, // a model needs the type
          );

      const made = await json('manage_browsers', { action: 'create', headless: true, timeout_seconds: 600 });
      const id = made.session_id as string;
      expect(made).not.toHaveProperty('cdp_ws_url'); // it has a token in it
      const { text, isError } = await call('browser_navigate', { session_id: id, url: pages.url });
      expect(isError, text).toBeFalsy();
      const snapshot = (await call('browser_snapshot', { session_id: id })).text;
      expect(snapshot).toContain(pages.url);
      const [, button] = /button "[^"]*" .*\[ref=(\w+)\]/.exec(snapshot) ?? [];
      const clicked = await call('browser_click', { session_id: id, element: 'the button', target: button });
      expect(clicked.isError, clicked.text).toBeFalsy();
      expect(
        await json('execute_playwright_code', { session_id: id, code: "return page.textContent('output')" }),
      ).toEqual(expect.objectContaining({ result: '1' }));
      expect(await call('browser_click', { session_id: id, element: 'none', target: 'e999' })).toMatchObject({
        isError: true,
        text: expect.stringContaining('e999'),
      });
      expect(await call('browser_snapshot', { session_id: 'nope' })).toMatchObject({ isError: true });
      expect(await call('browser_snapshot', { session_id: id, filename: '/tmp/x' })).toMatchObject({ isError: true });
      expect(existsSync(join(service.dataDir, '.playwright-mcp'))).toBe(false); // nothing is written beside the client
      const code = `await page.goto(${JSON.stringify(pages.url)}); return page.url()`;
      expect(await json('execute_playwright_code', { session_id: id, code })).toMatchObject({ success: true });
      const [shot] = (await call('computer_action', { session_id: id, action: 'screenshot' })).parts;
      expect(shot).toMatchObject({ type: 'image', mimeType: 'image/png' });
      expect((await call('computer_action', { session_id: id, action: 'click', x: 5, y: 5 })).text).toContain('Done');
      expect(await json('exec_command', { session_id: id, command: 'echo $((40 + 2)); exit 3' })).toEqual({
        exit_code: 3,
        stdout: '42\n',
        stderr: '',
      });
      await call('write_file', { session_id: id, path: '/tmp/a.txt', content: 'written' });
      expect((await call('read_file', { session_id: id, path: '/tmp/a.txt' })).text).toBe('written');
      expect(await json('browser_curl', { session_id: id, url: pages.url })).toMatchObject({ status: 200 });
      expect(await json('get_connection_context', { session_id: id })).toHaveProperty('cdp_ws_url');
      expect((await json('manage_browsers', { action: 'list' })).length).toBe(1);

      const resource = await client.readResource({ uri: `corral://browsers/${id}` });
      expect(JSON.parse((resource.contents[0] as { text: string }).text)).toMatchObject({ session_id: id });
      const { messages } = await client.getPrompt({ name: 'debug_session', arguments: { session_id: id } });
      expect(messages.some(({ content }) => content.type === 'image')).toBe(true);

      expect((await call('manage_browsers', { action: 'delete', id })).text).toBe('Done.');
      expect(await call('manage_browsers', { action: 'get', id })).toMatchObject({
        isError: true,
        text: expect.stringContaining('list action'),
      });
    } finally {
      await client.close();
    }
  });

  test('an agent logs in by a stored credential, which it does not see', { timeout: 300_000 }, async () => {
    const name = way.replaceAll(' ', '-');
    await service.sdk().credentials.create({ name, domain: shop.host, values: person });
    const { client, call, json, heard } = await connect(open());
    try {
      const login = await json('manage_auth_connections', {
        action: 'create',
        domain: shop.host,
        profile_name: name,
        login_url: `${shop.url}/login`,
        credential: { name },
      });
      await json('manage_auth_connections', { action: 'login', id: login.id });
      const status = async () => (await json('manage_auth_connections', { action: 'get', id: login.id })).status;
      await expect.poll(status, { timeout: 150_000, interval: 500 }).toBe('AUTHENTICATED');

      const made = await json('manage_browsers', { action: 'create', headless: true, profile: { name } });
      const id = made.session_id as string;
      const code = `await page.goto('${shop.url}/account'); return page.innerText('body')`;
      expect((await call('execute_playwright_code', { session_id: id, code })).text).toContain('Signed in as ann');
      expect((await call('manage_browsers', { action: 'delete', id })).text).toBe('Done.');
      expect(heard.join('\n')).not.toContain(person.password);
    } finally {
      await client.close();
    }
  });
});

test('the error for a mistake names the remedy, and a secret is refused before it is sent', async () => {
  const { client, call, json } = await connect(overHttp());
  const login = await json('manage_auth_connections', {
    action: 'create',
    domain: 'site.example',
    profile_name: 'site',
  });
  expect(login).toHaveProperty('id');
  for (const [name, args, words] of [
    ['manage_browsers', { action: 'get' }, "needs 'id'"],
    ['manage_browsers', { action: 'frobnicate' }, 'do not fit'],
    ['manage_profiles', { action: 'list', size: 3 }, 'do not fit'],
    ['manage_browsers', { action: 'create', timeout_seconds: -1 }, 'timeout_seconds'],
    ['manage_proxies', { action: 'create', type: 'custom', config: { host: 'a', port: 1, password: 'x' } }, 'secret'],
    ['browser_frobnicate', {}, 'no tool'],
  ] as const)
    expect(await call(name, args)).toMatchObject({ isError: true, text: expect.stringContaining(words) });
  expect((await call('search_docs', { query: 'backup restore data directory' })).text).toContain('corral backup');
  await client.close();
});

test('an unknown key is refused as everywhere', async () => {
  await expect(connect(overHttp('sk_wrong'))).rejects.toThrow('unauthorized');
  const answer = await fetch(new URL('/mcp', service.url), { headers: { authorization: `Bearer ${service.key}` } });
  expect(answer.status).toBe(405);
});

import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { askedJson, cut, segment } from './answers.ts';
import type { Content, Host, Tool } from './host.ts';
import { ToolFailure } from './host.ts';
import type { Mounted } from './server.ts';

/**
 * The tools of @playwright/mcp that are about pages. Those that touch files of this machine or run code in this process are left out; the
 * session has both of its own.
 */
const MOUNTED = new Set([
  'browser_navigate',
  'browser_navigate_back',
  'browser_snapshot',
  'browser_click',
  'browser_hover',
  'browser_drag',
  'browser_type',
  'browser_fill_form',
  'browser_press_key',
  'browser_select_option',
  'browser_wait_for',
  'browser_tabs',
  'browser_handle_dialog',
  'browser_evaluate',
  'browser_console_messages',
  'browser_network_requests',
  'browser_resize',
]);
const MOST_SESSIONS = 10;

interface Listed {
  name: string;
  description?: string;
  inputSchema: Tool['inputSchema'];
}

/** Page work by accessibility snapshot, on any session: each tool takes its `session_id`, and the first call connects to it. */
export function pageTools(host: Host): Mounted & { close(): Promise<void> } {
  const connections = new Map<string, Promise<Client>>();
  let listed: Promise<Omit<Tool, 'run'>[]> | undefined;
  let written: string | undefined;
  /** What Playwright writes (the console of a page, downloads) goes where it is removed. */
  const folder = () => (written ??= mkdtempSync(join(tmpdir(), 'corral-mcp-')));

  async function list(): Promise<Omit<Tool, 'run'>[]> {
    const client = await connect({}, folder()); // it opens nothing before a tool is called
    try {
      const { tools } = await client.listTools();
      return (tools as Listed[]).filter(({ name }) => MOUNTED.has(name)).map((tool) => withSession(tool));
    } finally {
      await client.close();
    }
  }

  async function of(id: string): Promise<Client> {
    const { session_id, cdp_ws_url } = await askedJson<{ session_id: string; cdp_ws_url: string }>(host, {
      method: 'GET',
      path: `/browsers/${segment(id)}`,
    });
    let client = connections.get(session_id);
    if (!client) {
      const [oldest] = connections.keys();
      const full = connections.size >= MOST_SESSIONS;
      client = connect({ cdpEndpoint: cdp_ws_url }, folder());
      connections.set(session_id, client); // before the first wait: calls at the same time share the connection
      client.catch(() => connections.delete(session_id));
      if (full) await forget(oldest!);
    }
    return client;
  }

  async function forget(id: string): Promise<void> {
    const client = connections.get(id);
    connections.delete(id);
    await (await client?.catch(() => undefined))?.close();
  }

  return {
    async tools() {
      if (host.disabled.has('pages')) return [];
      listed ??= list();
      return listed.catch((error: unknown) => {
        listed = undefined; // the next client asks again
        throw error;
      });
    },

    async call(name, { session_id, filename, ...args }) {
      if (typeof session_id !== 'string')
        throw new ToolFailure(`${name} needs 'session_id'. manage_browsers makes and lists sessions.`);
      if (filename !== undefined)
        throw new ToolFailure("'filename' is not taken: nothing is written to this machine. Leave it out.");
      const client = await of(session_id);
      const result = await client.callTool({ name, arguments: args }, undefined, { timeout: 120_000 });
      const content = (result.content as Content[]).map((part) =>
        part.type === 'text' ? { ...part, text: cut(part.text, 'Take a snapshot of a part (target, depth).') } : part,
      );
      return { content, ...(result.isError ? { isError: true } : {}) };
    },

    async close() {
      for (const id of connections.keys()) await forget(id);
      if (written !== undefined) await rm(written, { recursive: true, force: true });
    },
  };
}

function withSession({ name, description = '', inputSchema }: Listed): Omit<Tool, 'run'> {
  const { filename: _, ...properties } = inputSchema.properties ?? {};
  return {
    name,
    toolset: 'pages',
    description: `${description}. In the session that session_id names. browser_snapshot shows what came of it.`,
    inputSchema: {
      type: 'object',
      properties: { session_id: { type: 'string', description: 'Of manage_browsers.' }, ...properties },
      required: ['session_id', ...(inputSchema.required ?? [])],
    },
  };
}

/** The package @playwright/mcp is three lines around this part of playwright-core, which is here already. */
async function connect(browser: { cdpEndpoint?: string }, outputDir: string): Promise<Client> {
  const [{ Client: McpClient }, { InMemoryTransport }] = await Promise.all([
    import('@modelcontextprotocol/sdk/client/index.js'),
    import('@modelcontextprotocol/sdk/inMemory.js'),
  ]);
  const { tools } = createRequire(import.meta.url)('playwright-core/lib/coreBundle') as {
    tools: { createConnection(config: object): Promise<{ connect(transport: unknown): Promise<void> }> };
  };
  // It would write the snapshot after each action to a file, which the model cannot read: browser_snapshot gives it as text.
  const snapshot = { mode: 'none' };
  const timeouts = { action: 15_000, navigation: 60_000 };
  const server = await tools.createConnection({ browser, timeouts, capabilities: ['core'], outputDir, snapshot });
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  await server.connect(theirs);
  const client = new McpClient({ name: 'corral', version: '1' });
  await client.connect(ours);
  return client;
}

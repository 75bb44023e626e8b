import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BrowserContext } from 'playwright-core';

/**
 * The tools of Playwright's own MCP server, on the browser of the session. They run where Playwright code runs (runner.ts) and use its
 * connection, so that the next call knows the references of a snapshot, from any node or client.
 */
interface Message {
  id?: number;
  method?: string;
  result?: unknown;
  error?: { message: string };
}
interface Transport {
  onmessage?: (message: object) => void;
  start(): Promise<void>;
  send(message: Message): Promise<void>;
  close(): Promise<void>;
}
type Ask = (method: string, params?: object) => Promise<unknown>;

const asks = new WeakMap<BrowserContext, Promise<Ask>>();

export async function callTool(context: BrowserContext, name: string, args: object): Promise<unknown> {
  let ask = asks.get(context);
  if (!ask) {
    asks.set(context, (ask = connect(context)));
    ask.catch(() => asks.delete(context)); // the next call tries again
  }
  return (await ask)('tools/call', { name, arguments: args });
}

/** For the build, which keeps the list: nothing is opened. */
export async function listTools(): Promise<unknown> {
  const ask = await connect();
  const { tools } = (await ask('tools/list')) as { tools: unknown };
  return tools;
}

/** The package @playwright/mcp is three lines around this part of playwright-core, which is here already. */
async function connect(context?: BrowserContext): Promise<Ask> {
  const { tools } = createRequire(import.meta.url)('playwright-core/lib/coreBundle') as {
    tools: {
      createConnection(
        config: object,
        context?: () => Promise<BrowserContext>,
      ): Promise<{ connect(transport: Transport): Promise<void> }>;
    };
  };
  const config = {
    timeouts: { action: 15_000, navigation: 60_000 },
    capabilities: ['core'],
    outputDir: join(tmpdir(), 'playwright-mcp'), // the console of a page, downloads: inside the session
    // It would write the snapshot after each action to a file; browser_snapshot gives it as text.
    snapshot: { mode: 'none' },
  };
  const server = await tools.createConnection(config, context && (() => Promise.resolve(context)));
  const waiting = new Map<number, (answer: Message) => void>();
  const transport: Transport = {
    start: async () => {},
    close: async () => {},
    async send(message) {
      if (message.id !== undefined && message.method === undefined) waiting.get(message.id)?.(message);
    },
  };
  await server.connect(transport);
  let last = 0;
  const ask: Ask = (method, params = {}) => {
    const id = ++last;
    return new Promise((resolve, reject) => {
      waiting.set(id, ({ result, error }) => {
        waiting.delete(id);
        if (error) reject(new Error(error.message));
        else resolve(result);
      });
      transport.onmessage?.({ jsonrpc: '2.0', id, method, params });
    });
  };
  const clientInfo = { name: 'corral', version: '1' };
  await ask('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo });
  transport.onmessage?.({ jsonrpc: '2.0', method: 'notifications/initialized' });
  return ask;
}

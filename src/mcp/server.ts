import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { commaList } from '../lib/text.ts';
import { frequentTools } from './frequent.ts';
import type { Host } from './host.ts';
import { ToolFailure } from './host.ts';
import { checkOf, inWords } from './arguments.ts';
import { manageTools } from './manage.ts';
import { pageTools } from './pages.ts';
import { debugSession, listResources, prompts, readResource, resourceTemplates } from './resources.ts';

const instructions =
  'Corral runs real Chromium browsers. Make a session with manage_browsers (action create), work in it with execute_playwright_code, the browser_* tools or computer_action, and delete it when you are done. Give secrets to no tool: log in with manage_auth_connections. search_docs answers questions about the service.';

/** One server for one client. The kit is loaded with the first: a service without such clients does not pay for it. */
export async function mcpServer(host: Host): Promise<McpServer> {
  const [{ McpServer: Server }, types] = await Promise.all([
    import('@modelcontextprotocol/sdk/server/mcp.js'),
    import('@modelcontextprotocol/sdk/types.js'),
  ]);
  const tools = [...frequentTools(host), ...manageTools(host), ...pageTools(host)].filter(
    ({ toolset }) => !host.disabled.has(toolset),
  );
  const mcp = new Server(
    { name: 'corral', version: host.version },
    { capabilities: { tools: {}, resources: {}, prompts: {} }, instructions },
  );
  const { server } = mcp;

  server.setRequestHandler(types.ListToolsRequestSchema, async () => ({
    tools: tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema })),
  }));

  server.setRequestHandler(types.CallToolRequestSchema, async ({ params: { name, arguments: args = {} } }) => {
    const tool = tools.find((one) => one.name === name);
    try {
      if (!tool) throw new ToolFailure(`There is no tool '${name}'. tools/list lists the available tools.`);
      const fits = await checkOf(tool, host);
      if (!fits(args)) throw new ToolFailure(`The arguments do not fit: ${inWords(fits.errors)}.`);
      return { content: await tool.run(args, host) };
    } catch (error) {
      if (!(error instanceof ToolFailure)) throw error;
      return { isError: true, content: [{ type: 'text' as const, text: error.message }] };
    }
  });

  server.setRequestHandler(types.ListResourcesRequestSchema, async () => ({ resources: await listResources() }));
  server.setRequestHandler(types.ListResourceTemplatesRequestSchema, async () => ({ resourceTemplates }));
  server.setRequestHandler(types.ReadResourceRequestSchema, async ({ params }) => ({
    contents: [await readResource(host, params.uri)],
  }));
  server.setRequestHandler(types.ListPromptsRequestSchema, async () => ({ prompts }));
  server.setRequestHandler(types.GetPromptRequestSchema, async ({ params }) => {
    const id = params.arguments?.['session_id'];
    if (params.name !== 'debug_session' || !id)
      throw new ToolFailure('The prompt is debug_session, and takes session_id.');
    const content = await debugSession(host, id);
    return { messages: content.map((one) => ({ role: 'user' as const, content: one })) };
  });
  return mcp;
}

export function toolsets(list: string | undefined): Set<string> {
  return new Set(commaList(list ?? ''));
}

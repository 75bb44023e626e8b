import { readFileSync } from 'node:fs';
import { askedJson, cut, segment } from './answers.ts';
import type { Content, Host, Tool } from './host.ts';
import { ToolFailure } from './host.ts';

/**
 * The tools of @playwright/mcp that are about pages. Those that write files or run code outside of pages are left out; there are
 * read_file, write_file and execute_playwright_code.
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
const MOST_SECONDS = 120;

interface Listed {
  name: string;
  description?: string;
  inputSchema: Tool['inputSchema'];
}

interface Ran {
  success: boolean;
  result?: { content: Content[]; isError?: boolean };
  error?: string;
}

let listed: Listed[] | undefined;

/** Page work by accessibility snapshot, in any session. The tools run inside it, beside its Playwright code (guest/inside/page-tools.ts). */
export function pageTools(host: Host): Tool[] {
  // Made by scripts/compile.mjs: Playwright is a large package, and the service need not load it for a list.
  listed ??= JSON.parse(readFileSync(new URL('./page-tools.json', import.meta.url), 'utf8')) as Listed[];
  return listed.filter(({ name }) => MOUNTED.has(name)).map((tool) => onSession(tool, host));
}

function onSession({ name, description = '', inputSchema }: Listed, host: Host): Tool {
  const { filename: _, ...properties } = inputSchema.properties ?? {};
  return {
    name,
    toolset: 'pages',
    description: `${description}. In the session that session_id names. browser_snapshot shows what came of it.`,
    inputSchema: {
      type: 'object',
      properties: { session_id: { type: 'string', description: 'Of manage_browsers.' }, ...properties },
      required: ['session_id', ...(inputSchema.required ?? [])],
      additionalProperties: false,
    },
    async run({ session_id, ...args }) {
      const path = `/browsers/${segment(String(session_id))}/playwright/execute`;
      const body = { code: codeOf(name, args), timeout_sec: MOST_SECONDS };
      const { result, error } = await askedJson<Ran>(host, { method: 'POST', path, body });
      if (!result) throw new ToolFailure(`${name} did not run: ${error ?? 'no reason was given.'} Take a snapshot.`);
      const content = result.content.map((part) =>
        part.type === 'text' ? { ...part, text: cut(part.text, 'Take a snapshot of a part (target, depth).') } : part,
      );
      if (!result.isError) return content;
      throw new ToolFailure(content.map((part) => (part.type === 'text' ? part.text : '')).join('\n'));
    },
  };
}

/** Playwright code that calls the tool: the runner's own file names the directory. */
function codeOf(name: string, args: object): string {
  const call = `callTool(context, ${JSON.stringify(name)}, ${JSON.stringify(args)})`;
  return `const { callTool } = await import(process.argv[1].replace(/runner[.]js$/, 'page-tools.js'));\nreturn ${call};`;
}

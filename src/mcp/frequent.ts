import { asked, askedJson, cut, jsonText, MOST_CHARACTERS, parsedWhole, segment, text } from './answers.ts';
import { searchDocs } from './docs.ts';
import type { Content, Host, Tool } from './host.ts';
import { ToolFailure } from './host.ts';
import { parametersOf, propertiesOf, send } from './manage.ts';

const session = {
  type: 'string',
  description: 'The session_id (or name) of a session; manage_browsers creates and lists sessions.',
};
const at = (args: Record<string, unknown>, path: string) => `/browsers/${segment(String(args['session_id']))}${path}`;

const schema = (properties: Record<string, object>, ...required: string[]) => ({
  type: 'object' as const,
  properties: { session_id: session, ...properties },
  required: ['session_id', ...required],
  additionalProperties: false,
});

/** The actions of `computer_action`, each an operation of the API. */
const computer: Record<string, string> = {
  screenshot: 'takeScreenshot',
  click: 'clickMouse',
  move: 'moveMouse',
  drag: 'dragMouse',
  scroll: 'scroll',
  type: 'typeText',
  press_key: 'pressKey',
  position: 'getMousePosition',
};

export function frequentTools(host: Host): Tool[] {
  const operations = Object.entries(computer).map(([action, name]) => ({ action, ...host.operation(name) }));
  const { id: _, ...parameters } = parametersOf(operations);
  return [
    {
      name: 'execute_playwright_code',
      toolset: 'playwright',
      description:
        'Run Playwright code (JavaScript or TypeScript) inside a session, with `page`, `context` and `browser`. The result is the return value of the code. Navigate, read and fill in one call.',
      inputSchema: schema(
        {
          code: {
            type: 'string',
            description: "Such as: await page.goto('https://example.com'); return page.title();",
          },
          timeout_sec: { type: 'number', description: 'Timeout in seconds; 60 if not given.' },
        },
        'code',
      ),
      run: async ({ session_id, ...body }) => [
        jsonText(
          await askedJson(host, { method: 'POST', path: at({ session_id }, '/playwright/execute'), body }),
          'Return less from the code.',
        ),
      ],
    },
    {
      name: 'computer_action',
      toolset: 'computer',
      description: `Mouse, keyboard and screenshots of a session. Coordinates are pixels of the screenshot. ${operations.map(({ action, about }) => `${action}: ${about}`).join(' ')}`,
      inputSchema: {
        type: 'object',
        properties: {
          session_id: session,
          action: { type: 'string', enum: Object.keys(computer) },
          ...parameters,
          ...propertiesOf(operations),
        },
        required: ['session_id', 'action'],
        additionalProperties: false,
      },
      run: ({ session_id, action, ...rest }) => computerAction(host, String(action), { ...rest, id: session_id }),
    },
    {
      name: 'browser_curl',
      toolset: 'curl',
      description: "Send an HTTP request through a session's browser, with its cookies and its proxy.",
      inputSchema: schema(
        {
          url: { type: 'string' },
          method: { type: 'string' },
          headers: { type: 'object', additionalProperties: { type: 'string' } },
          body: { type: 'string' },
        },
        'url',
      ),
      run: async ({ session_id, ...body }) => [
        jsonText(await askedJson(host, { method: 'POST', path: at({ session_id }, '/curl'), body })),
      ],
    },
    {
      name: 'exec_command',
      toolset: 'process',
      description: "Run a shell command inside a session's sandbox. Returns its output and exit code.",
      inputSchema: schema(
        { command: { type: 'string' }, timeout_sec: { type: 'number', description: 'Seconds; 60 if not given.' } },
        'command',
      ),
      run: async ({ session_id, command, timeout_sec = 60 }) =>
        execCommand(host, at({ session_id }, '/process/exec'), command, timeout_sec),
    },
    {
      name: 'read_file',
      toolset: 'fs',
      description: 'Read a text file or an image of a session. `offset` and `length` are bytes, for long files.',
      inputSchema: schema({ path: { type: 'string' }, offset: { type: 'number' }, length: { type: 'number' } }, 'path'),
      run: async ({ session_id, path, offset = 0, length = 16_000 }) =>
        readFile(host, at({ session_id }, '/fs/read_file'), String(path), Number(offset), Number(length)),
    },
    {
      name: 'write_file',
      toolset: 'fs',
      description: 'Write a text file in a session.',
      inputSchema: schema({ path: { type: 'string' }, content: { type: 'string' } }, 'path', 'content'),
      run: async ({ session_id, path, content }) => {
        const bytes = Buffer.from(String(content));
        await asked(host, { method: 'PUT', path: at({ session_id }, '/fs/write_file'), query: { path }, body: bytes });
        return [text(`Wrote ${bytes.length} bytes to ${String(path)}.`)];
      },
    },
    {
      name: 'get_connection_context',
      toolset: 'connection',
      description:
        'The addresses of a session for a program: CDP for Playwright and Puppeteer, WebDriver BiDi, and the live view for people. The addresses contain a token: use them in code that you run, and show the user only the live view.',
      inputSchema: schema({}),
      run: async (args) => {
        const { session_id, cdp_ws_url, webdriver_ws_url, browser_live_view_url } = await askedJson<
          Record<string, string>
        >(host, { method: 'GET', path: at(args, '') });
        const snippet = `const browser = await chromium.connectOverCDP('${cdp_ws_url}'); // playwright-core`;
        return [text(JSON.stringify({ session_id, cdp_ws_url, webdriver_ws_url, browser_live_view_url, snippet }))];
      },
    },
    {
      name: 'search_docs',
      toolset: 'docs',
      description: 'Search the documentation of this Corral service. Use a few words.',
      inputSchema: {
        type: 'object',
        properties: { query: { type: 'string', maxLength: 200 } },
        required: ['query'],
        additionalProperties: false,
      },
      run: async ({ query }) => [text(await searchDocs(String(query)))],
    },
  ];
}

async function computerAction(host: Host, action: string, args: Record<string, unknown>): Promise<Content[]> {
  const { bytes, headers } = await send(host, host.operation(computer[action]!), args, action);
  if (action === 'screenshot')
    return [
      { type: 'image', data: bytes.toString('base64'), mimeType: String(headers['content-type'] ?? 'image/png') },
    ];
  return [text(bytes.length === 0 ? 'Done. Take a screenshot to see the result.' : bytes.toString('utf8'))];
}

interface Ran {
  exit_code: number | null;
  stdout_b64?: string;
  stderr_b64?: string;
}

async function execCommand(host: Host, path: string, command: unknown, timeout: unknown): Promise<Content[]> {
  const body = { command: '/bin/sh', args: ['-c', String(command)], timeout_sec: timeout };
  const ran = parsedWhole((await asked(host, { method: 'POST', path, body })).bytes) as Ran;
  const output = (encoded = '') => Buffer.from(encoded, 'base64').toString('utf8');
  const readOn = 'Write the output to a file and read it in parts with read_file.';
  const [stdout, stderr] = [output(ran.stdout_b64), output(ran.stderr_b64)];
  // Cut before it is written as JSON: six megabytes of control characters become six times as much.
  const [out, err] = [stdout.slice(0, MOST_CHARACTERS), stderr.slice(0, MOST_CHARACTERS)];
  const left = stdout.length - out.length + stderr.length - err.length;
  return [text(cut(JSON.stringify({ exit_code: ran.exit_code, stdout: out, stderr: err }), readOn, left))];
}

async function readFile(host: Host, path: string, file: string, offset: number, length: number): Promise<Content[]> {
  const { bytes } = await asked(host, { method: 'GET', path, query: { path: file } });
  const image = imageType(bytes);
  if (image && bytes.length <= 2_000_000) return [{ type: 'image', data: bytes.toString('base64'), mimeType: image }];
  if (bytes.subarray(0, 8000).includes(0))
    throw new ToolFailure(`${file} is not a text file (${bytes.length} bytes). Use exec_command to inspect it.`);
  const part = bytes.subarray(offset, offset + Math.min(length, 16_000));
  const left = bytes.length - offset - part.length;
  const more = left > 0 ? [text(`${left} more bytes: read on with offset ${offset + part.length}.`)] : [];
  return [text(part.toString('utf8')), ...more];
}

function imageType(bytes: Buffer): string | undefined {
  if (bytes.subarray(0, 4).toString('latin1') === '\x89PNG') return 'image/png';
  if (bytes.subarray(0, 3).toString('hex') === 'ffd8ff') return 'image/jpeg';
  return undefined;
}

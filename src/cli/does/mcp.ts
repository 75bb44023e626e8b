import {
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { bounded } from '../../mcp/answers.ts';
import { mcpServer, toolsets } from '../../mcp/server.ts';
import type { Answer, Host } from '../../mcp/host.ts';
import { version } from '../../version.ts';
import { ask, type Question } from '../client/http.ts';
import { operation } from '../client/operations.ts';
import { Fault, Refused, UsageError } from '../fault.ts';
import { untilInterrupted } from '../interrupt.ts';
import type { Call } from '../table.ts';

/** The server of a client that starts programs: messages on stdin and stdout, until stdin ends. */
export async function serve(call: Call): Promise<void> {
  const target = call.target();
  const host: Host = {
    operation,
    version,
    disabled: toolsets(call.env['CORRAL_MCP_DISABLED_TOOLSETS']),
    async ask({ body, ...rest }): Promise<Answer> {
      const bytes = Buffer.isBuffer(body) ? body : undefined;
      const headers = bytes ? { headers: { 'content-type': 'application/octet-stream' } } : {};
      const sent = bytes ? { stream: Readable.from([bytes]), bytes: bytes.length } : body;
      const question: Question = { ...rest, ...headers, ...(sent === undefined ? {} : { body: sent }) };
      try {
        const answer = await ask(target, question);
        return { status: answer.statusCode!, headers: answer.headers, bytes: await bounded(answer) };
      } catch (error) {
        if (!(error instanceof Fault)) throw error;
        const status = error instanceof Refused ? error.status : 503;
        const code = error instanceof Refused ? error.code : undefined;
        return { status, headers: {}, bytes: Buffer.from(JSON.stringify({ code, message: error.message })) };
      }
    },
  };
  const { StdioServerTransport } = await import('@modelcontextprotocol/sdk/server/stdio.js');
  const server = await mcpServer(host);
  await untilInterrupted(async (signal) => {
    const over = new Promise<void>((done) => {
      process.stdin.once('end', done).once('close', done);
      signal.addEventListener('abort', () => done(), { once: true });
    });
    await server.connect(new StdioServerTransport());
    await over;
  });
  await server.close();
}

interface Client {
  /** The file that it reads, and where in it the servers are. */
  file(env: Record<string, string | undefined>): string;
  key: string;
}

const home = (env: Record<string, string | undefined>, ...path: string[]) => join(env['HOME'] || homedir(), ...path);

/** Clients with a JSON configuration file that names servers. */
const clients: Record<string, Client> = {
  claude: { file: (env) => home(env, '.claude.json'), key: 'mcpServers' },
  cursor: { file: (env) => home(env, '.cursor/mcp.json'), key: 'mcpServers' },
  windsurf: { file: (env) => home(env, '.codeium/windsurf/mcp_config.json'), key: 'mcpServers' },
  gemini: { file: (env) => home(env, '.gemini/settings.json'), key: 'mcpServers' },
  vscode: { file: () => resolve('.vscode/mcp.json'), key: 'servers' },
};
const clientNames = Object.keys(clients);

/** Shows the change, and writes it with --yes or after a confirmation. The rest of the file does not change. */
export async function install(call: Call): Promise<void> {
  const named = call.options['for'] as string | undefined;
  const client = named === undefined ? undefined : clients[named];
  if (!client || !Object.hasOwn(clients, named!))
    throw new UsageError(`--for takes ${clientNames.slice(0, -1).join(', ')} or ${clientNames.at(-1)}.`);
  const file = client.file(call.env);
  const { context, from } = call.target();
  const args = [
    fileURLToPath(new URL('../../../bin/corral.cjs', import.meta.url)),
    'mcp',
    ...(context ? ['--context', context] : []),
  ];
  // A key is never written there: the program finds it where `corral login` keeps it, or in its data directory.
  if (context === undefined)
    throw new UsageError(
      `The service comes from ${from}, which the client would not know. Run \`corral login URL\` first.`,
    );
  const dataDir =
    context === 'local' ? { env: { CORRAL_DATA_DIR: resolve(call.env['CORRAL_DATA_DIR'] || 'data') } } : {};
  const entry = { command: process.execPath, args, ...dataDir };
  const there = existsSync(file);
  const text = merged(there ? readFileSync(file, 'utf8') : '', { file, key: client.key, entry });
  call.output.note(`${file}\n${JSON.stringify({ [client.key]: { corral: entry } }, null, 2)}`);
  if (call.options['yes'] !== true && !(await confirmed()))
    throw new Fault('Nothing was written. --yes writes it without asking.');
  mkdirSync(dirname(file), { recursive: true });
  const real = there ? realpathSync(file) : file; // a link stays a link
  const draft = `${real}.${process.pid}`;
  try {
    // The file may hold keys of other servers, so it keeps its mode.
    writeFileSync(draft, text, { mode: there ? statSync(real).mode & 0o777 : 0o600, flag: 'wx' });
    renameSync(draft, real);
  } finally {
    rmSync(draft, { force: true });
  }
  call.output.done(`Wrote ${file}. Start the client again.`, { file, server: entry });
}

/** The configuration with the server in it. Nothing else of it changes, so a file that cannot be parsed is refused. */
function merged(text: string, { file, key, entry }: { file: string; key: string; entry: object }): string {
  let there: unknown;
  try {
    there = text.trim() === '' ? {} : JSON.parse(text);
  } catch (error) {
    throw new UsageError(`${file} is not plain JSON (${(error as Error).message}). Add the server to it by hand.`);
  }
  if (!isObject(there)) throw new UsageError(`${file} has no object of JSON. Mend it, or add the server by hand.`);
  const servers = there[key] ?? {};
  if (!isObject(servers))
    throw new UsageError(`'${key}' in ${file} is not an object. Correct it, or add the server by hand.`);
  return `${JSON.stringify({ ...there, [key]: { ...servers, corral: entry } }, null, 2)}\n`;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

async function confirmed(): Promise<boolean> {
  if (!process.stdin.isTTY) return false;
  const { createInterface } = await import('node:readline/promises');
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await lines.question('Write it? [y/N] ')).trim());
  } finally {
    lines.close();
  }
}

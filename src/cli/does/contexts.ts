import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { checked, contextsFile, findTarget, LOCAL, readContexts, writeContexts } from '../client/contexts.ts';
import { askJson } from '../client/http.ts';
import { UsageError } from '../fault.ts';
import { readText } from '../fields.ts';
import type { Call } from '../table.ts';
import { word } from '../table.ts';

/** The key is never an argument: other users of the machine see those. */
export async function login(call: Call): Promise<void> {
  const asks = process.stdin.isTTY;
  const typed = (call.arguments[0] as string | undefined) ?? (asks ? await prompt('Address: ', false) : undefined);
  if (typed === undefined) throw new UsageError("'corral login' needs the address of the service.");
  const url = checked(typed, 'The address');
  const key = (asks ? await prompt('API key: ', true) : readText('-', 'stdin')).trim();
  if (!/^[\x21-\x7e]+$/.test(key)) throw new UsageError('The API key is empty, or has characters that no key has.');
  const name = (call.options['name'] as string | undefined) ?? new URL(url).host;
  if (name === LOCAL || !/^[\w.:-]+$/.test(name))
    throw new UsageError(
      `A context takes letters, digits, dots, colons and dashes, and 'local' is taken: not '${name}'.`,
    );
  const project = call.options['project'] as string | undefined;
  await askJson({ url, key, project }, { method: 'GET', path: '/browsers', query: { limit: 1 } });
  const file = contextsFile(call.env);
  const kept = readContexts(file);
  kept.contexts[name] = { url, key, ...(project === undefined ? {} : { project }) };
  writeContexts(file, { ...kept, current: name });
  call.output.done(`Logged in to ${url} as '${name}'.`, { name, url });
}

export async function logout(call: Call): Promise<void> {
  const file = contextsFile(call.env);
  const kept = readContexts(file);
  const name = (call.arguments[0] as string | undefined) ?? kept.current;
  if (name === undefined || !kept.contexts[name])
    throw new UsageError(name === undefined ? 'No context is used.' : `There is no context '${name}'.`);
  delete kept.contexts[name];
  writeContexts(file, { ...kept, current: kept.current === name ? undefined : kept.current });
  call.output.done(`Forgot '${name}'.`, { name });
}

export async function list(call: Call): Promise<void> {
  const { current, contexts } = readContexts(contextsFile(call.env));
  const rows = Object.entries(contexts).map(([name, { url, project }]) => ({
    name,
    url,
    project: project ?? null,
    used: name === current,
  }));
  call.output.list(rows, ['name', 'url', 'project', 'used']);
}

export async function use(call: Call): Promise<void> {
  const name = word(call, 0);
  const file = contextsFile(call.env);
  const kept = readContexts(file);
  if (name !== LOCAL && !kept.contexts[name]) throw new UsageError(`There is no context '${name}'.`);
  writeContexts(file, { ...kept, current: name });
  call.output.done(`Using '${name}'.`, { name });
}

export async function show(call: Call): Promise<void> {
  const { context, project } = call.options as { context?: string; project?: string };
  const found = findTarget(call.env, { context, project });
  call.output.one({ url: found.url, from: found.from, project: found.project ?? null });
}

/** One line from the terminal; a secret is not shown while it is typed. */
async function prompt(question: string, secret: boolean): Promise<string> {
  process.stderr.write(question);
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: process.stdin, output: secret ? nowhere : process.stderr, terminal: true });
  try {
    return await lines.question('');
  } finally {
    lines.close();
    if (secret) process.stderr.write('\n');
  }
}

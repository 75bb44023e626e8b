import { once } from 'node:events';
import { Socket } from 'node:net';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fetchSource, type GitSource } from './git.ts';
import { say } from './say.ts';

/**
 * Fetches the source of a deployment from a git repository, in a sandbox that ends before the build: packages run code of others when
 * they are installed, and code of the same user could read the token in the memory of a process beside it. It reads the source on
 * descriptor 3 and reports on descriptor 4, a line of JSON each, and ends when descriptor 3 is closed.
 */
const orders = createInterface({ input: new Socket({ fd: 3, readable: true, writable: false }) });
const allRead = once(orders, 'close').catch(() => {});
const out = new Socket({ fd: 4, readable: false, writable: true });

let code = 0;
try {
  const [line] = (await once(orders, 'line')) as [string];
  await fetchSource(JSON.parse(line) as GitSource, join(homedir(), 'app'));
  out.end('{"fetched":true}\n');
} catch (error) {
  const message = error instanceof Error ? error.message : String(error);
  say(message);
  out.end(`${JSON.stringify({ error: message.slice(0, 4000) })}\n`);
  code = 1;
}
await allRead;
process.exit(code);

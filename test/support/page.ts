import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chown, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';

const executable = '/usr/lib/chromium/chromium-headless-shell';
const nobody = 65_534;

export interface Page {
  /** Resolves to Chromium's error text, or to undefined when there was none. */
  goto(url: string): Promise<string | undefined>;
  evaluate(expression: string): Promise<unknown>;
  close(): Promise<void>;
}

/**
 * One page of a real Chromium, launched with as little of our own as can be: for tests and benchmarks of what a browser
 * needs before ours can be launched. The few words of CDP that those need, over the pipe.
 */
export async function openPage(flags: string[]): Promise<Page> {
  const home = await mkdtemp(join(tmpdir(), 'corral-page-'));
  const root = process.getuid?.() === 0; // Chromium's sandbox wants an ordinary user
  if (root) await chown(home, nobody, nobody);
  const quiet = ['--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run'];
  const chromium = spawn(executable, [`--user-data-dir=${home}`, '--remote-debugging-pipe', ...quiet, ...flags], {
    stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
    env: { HOME: home },
    ...(root && { uid: nobody, gid: nobody }),
  });
  const exited = once(chromium, 'exit');
  const [, , , commands, messages] = chromium.stdio;
  if (!(commands instanceof Writable && messages instanceof Readable)) throw new Error('Chromium has no pipe');

  const waiting = new Map<number, (message: Message) => void>();
  let loaded: (() => void) | undefined;
  let rest = '';
  messages.setEncoding('utf8').on('data', (text: string) => {
    const parts = (rest + text).split('\0');
    rest = parts.pop() ?? '';
    for (const part of parts) {
      const message: Message = JSON.parse(part);
      if (message.method === 'Page.loadEventFired') loaded?.();
      if (message.id !== undefined) waiting.get(message.id)?.(message);
    }
  });
  let lastId = 0;
  let sessionId: string | undefined;
  const call = async (method: string, params: object = {}): Promise<Record<string, unknown>> => {
    const id = (lastId += 1);
    commands.write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    const { result, error } = await new Promise<Message>((resolve) => waiting.set(id, resolve));
    waiting.delete(id);
    if (error) throw new Error(`${method}: ${error.message}`);
    return result ?? {};
  };

  const { targetId } = await call('Target.createTarget', { url: 'about:blank' });
  sessionId = String((await call('Target.attachToTarget', { targetId, flatten: true }))['sessionId']);
  await call('Page.enable');
  return {
    async goto(url) {
      const load = new Promise<void>((resolve) => (loaded = resolve));
      const { errorText } = await call('Page.navigate', { url });
      await load;
      return typeof errorText === 'string' ? errorText : undefined;
    },
    async evaluate(expression) {
      const { result } = await call('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true });
      return result && typeof result === 'object' && 'value' in result ? result.value : result;
    },
    async close() {
      chromium.kill('SIGKILL');
      await exited;
      await rm(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
    },
  };
}

interface Message {
  id?: number;
  method?: string;
  result?: Record<string, unknown>;
  error?: { message: string };
}

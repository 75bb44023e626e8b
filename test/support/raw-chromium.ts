import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';

/** An unprivileged user: Chromium's sandbox does not run for root. */
const NOBODY = 65_534;

export interface RawChromium {
  process: ChildProcess;
  /** Chromium's fd 3 and 4, when it was started on a pipe. */
  toBrowser: Writable;
  fromBrowser: Readable;
  /** The browser's websocket, when it was started on a port. */
  endpoint: string;
  stop(): Promise<void>;
}

/** A headless shell with nothing of ours around it, on a DevTools pipe or a loopback port. */
export async function rawChromium(on: 'pipe' | 'port', ...flags: string[]): Promise<RawChromium> {
  const directory = mkdtempSync(join(tmpdir(), 'corral-raw-'));
  const asRoot = process.getuid?.() === 0;
  if (asRoot) chownSync(directory, NOBODY, NOBODY);
  const child = spawn(
    process.env['CORRAL_TEST_HEADLESS_SHELL'] ?? '/usr/lib/chromium/chromium-headless-shell',
    [
      on === 'pipe' ? '--remote-debugging-pipe' : '--remote-debugging-port=0',
      `--user-data-dir=${directory}`,
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--no-first-run',
      ...flags,
      'about:blank',
    ],
    {
      cwd: directory,
      env: { HOME: directory, PATH: process.env['PATH'] },
      stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'],
      ...(asRoot && { uid: NOBODY, gid: NOBODY }),
    },
  );
  const exited = once(child, 'exit');
  const [, , errors, toBrowser, fromBrowser] = child.stdio;
  if (!(errors instanceof Socket && toBrowser instanceof Socket && fromBrowser instanceof Socket)) {
    throw new Error('Node gave no sockets for Chromium’s stderr, fd 3 and fd 4.');
  }
  errors.setEncoding('utf8');
  const endpoint = on === 'pipe' ? '' : await endpointIn(errors);
  errors.resume();
  return {
    process: child,
    toBrowser,
    fromBrowser,
    endpoint,
    async stop() {
      child.kill('SIGKILL');
      await exited;
      await rm(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
    },
  };
}

async function endpointIn(errors: Readable): Promise<string> {
  let seen = '';
  for await (const text of errors.iterator({ destroyOnReturn: false })) {
    seen += String(text);
    const found = /DevTools listening on (ws:\S+)/.exec(seen);
    if (found) return found[1]!;
  }
  throw new Error(`Chromium printed no DevTools endpoint: ${seen}`);
}

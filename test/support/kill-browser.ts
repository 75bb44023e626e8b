import { readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { signal, tree } from '../../src/chromium/sandbox/process-tree.ts';
import type { Service } from './service.ts';

/** Kills the browser process of a session, as a crash would. */
export async function killBrowser({ app }: Pick<Service, 'app'>, sessionId: string): Promise<void> {
  const { engine, release } = await app.sessions.hold(sessionId);
  const found = tree(engine.browser.init!).filter((pid) => {
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ');
      return /^\S*chromium\S* /.test(command) && !command.includes('--type=');
    } catch {
      return false; // ended meanwhile
    }
  });
  expect(found).not.toEqual([]);
  for (const pid of found) signal(pid, 'SIGKILL');
  release();
}

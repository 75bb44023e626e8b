import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { freezeTree, thaw, type Stopped } from './process-tree.ts';

test('a tree that is not still in time is given up, and what was stopped of it runs on', async () => {
  const child = spawn('sh', ['-c', 'while :; do /bin/true; done'], { stdio: 'ignore' });
  const exited = once(child, 'exit');
  const stopped: Stopped = new Map();
  try {
    await once(child, 'spawn');
    await expect(freezeTree(child.pid!, stopped, -1)).rejects.toThrow('processes come faster');
    await freezeTree(child.pid!, stopped, 60_000);
    expect(stopped.has(child.pid!)).toBe(true);
    thaw(stopped);
    expect(stopped.size).toBe(0);
  } finally {
    child.kill('SIGKILL');
    await exited;
  }
});

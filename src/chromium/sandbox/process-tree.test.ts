import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
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

// It waits for its child as a shell does for a job: it stops itself when the child is stopped. Entering a namespace takes root.
test.runIf(process.getuid?.() === 0)('nsenter runs on after a thaw, and exits when its child is killed', async () => {
  const child = spawn('nsenter', ['--pid=/proc/self/ns/pid', 'sleep', '1000'], { stdio: 'ignore', detached: true });
  const exited = once(child, 'exit');
  const stateOf = (pid: number) => / ([A-Z]) (?!.*\))/.exec(readFileSync(`/proc/${pid}/stat`, 'latin1'))![1];
  const sleeping = () =>
    readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'latin1').split(' ').filter(Boolean).map(Number);
  try {
    await expect.poll(sleeping).toHaveLength(1);
    for (let round = 0; round < 100; round++) {
      const stopped: Stopped = new Map();
      await freezeTree(child.pid!, stopped);
      expect([...stopped.keys()]).toEqual([child.pid, ...sleeping()]);
      thaw(stopped);
    }
    await expect.poll(() => stateOf(sleeping()[0]!)).toBe('S');
    process.kill(sleeping()[0]!, 'SIGKILL');
    await exited;
  } finally {
    child.kill('SIGKILL');
    await exited;
  }
});

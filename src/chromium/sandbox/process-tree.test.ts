import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { freezeTree, killTree, memoryParts, thaw, tree, treeMemory, type Stopped } from './process-tree.ts';

const nameOf = (pid: number) => readFileSync(`/proc/${pid}/comm`, 'utf8').trim();

test('freezing a tree is cancelled after a time, and its stopped processes run again', async () => {
  const child = spawn('sh', ['-c', 'while :; do /bin/true; done'], { stdio: 'ignore' });
  const exited = once(child, 'exit');
  const stopped: Stopped = new Map();
  try {
    await once(child, 'spawn');
    await expect(freezeTree(child.pid!, stopped, -1)).rejects.toThrow('processes come faster');
    await freezeTree(child.pid!, stopped, 60_000);
    expect(stopped.has(child.pid!)).toBe(true);
    await thaw(stopped);
    expect(stopped.size).toBe(0);
  } finally {
    child.kill('SIGKILL');
    await exited;
  }
});

test('the memory of trees is that of all their processes, and the event loop runs while it is read', async () => {
  const leaders = Array.from({ length: 2 }, () => {
    const { pid } = spawn('sh', ['-c', 'sleep 600 & sleep 600 & sleep 600'], { stdio: 'ignore', detached: true });
    return pid!;
  });
  try {
    const members = () => leaders.flatMap((leader) => tree(leader));
    await expect.poll(() => members().filter((pid) => nameOf(pid) === 'sleep')).toHaveLength(6);
    let rounds = 0;
    const count = setInterval(() => (rounds += 1), 0);
    const bytes = await treeMemory(leaders);
    clearInterval(count);
    expect(rounds).toBeGreaterThan(0);
    const parts = await Promise.all(members().map(memoryParts));
    const sum = parts.reduce((total, part) => total + part.bytes, 0);
    expect(bytes).toBeGreaterThan(sum / 2); // shared memory counts less for each process when others start
    expect(bytes).toBeLessThan(sum * 2);
  } finally {
    for (const leader of leaders) await killTree(leader);
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
      await thaw(stopped);
    }
    await expect.poll(() => stateOf(sleeping()[0]!)).toBe('S');
    process.kill(sleeping()[0]!, 'SIGKILL');
    await exited;
  } finally {
    child.kill('SIGKILL');
    await exited;
  }
});

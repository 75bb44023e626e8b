import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { afterEach, expect, test } from 'vitest';
import { watchMemory } from './memory-watch.ts';
import { killTree, tree } from './process-tree.ts';

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

/** Takes so much and keeps it: nobody reads what it writes. */
function hog(megabytes: number): number {
  const script = `head -c ${megabytes}m /dev/zero | tail -c ${megabytes}m | sleep 600`;
  const { pid } = spawn('sh', ['-c', script], { stdio: 'ignore', detached: true });
  ends.push(() => killTree(pid!));
  return pid!;
}

const commands = (leader: number) => tree(leader).map((pid) => readFileSync(`/proc/${pid}/comm`, 'utf8').trim());

test('what takes too much loses its largest process, hears why, and its neighbour keeps everything', async () => {
  const [large, small] = [hog(120), hog(20)];
  const told: string[] = [];
  const neighbour: string[] = [];
  for (const [leader, said] of [
    [large, told],
    [small, neighbour],
  ] as const)
    ends.push(
      watchMemory({
        leaders: () => [leader],
        mostBytes: 60 * 2 ** 20,
        outOfMemory: () => undefined,
        told: (sentence) => said.push(sentence),
      }),
    );
  await expect.poll(() => told, { timeout: 30_000 }).toHaveLength(1);
  expect(told[0]).toMatch(/took \d+ MB of memory and may take 60: its largest process was ended/);
  await expect.poll(() => commands(large), { timeout: 30_000 }).not.toContain('tail');
  expect(commands(small)).toContain('tail');
  expect(neighbour).toEqual([]);
});

test('what the kernel has ended is told once', async () => {
  let count = 3;
  const told: string[] = [];
  ends.push(
    watchMemory({
      leaders: () => [],
      mostBytes: 2 ** 30,
      outOfMemory: () => count,
      told: (sentence) => told.push(sentence),
    }),
  );
  count = 4;
  await expect
    .poll(() => told, { timeout: 30_000 })
    .toEqual(["The session's memory ran out (1024 MB), and the kernel ended its largest process."]);
});

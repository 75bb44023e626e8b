import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { afterEach, expect, test } from 'vitest';
import { watchMemory, type OutOfMemory } from './memory-watch.ts';
import { killTree, memoryParts, thaw, tree } from './process-tree.ts';
import { sharedMemory } from './shared-memory.ts';

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

/** Allocates memory and keeps it: no process reads its output. */
function hog(megabytes: number): number {
  const script = `head -c ${megabytes}m /dev/zero | tail -c ${megabytes}m | sleep 600`;
  const { pid } = spawn('sh', ['-c', script], { stdio: 'ignore', detached: true });
  ends.push(() => killTree(pid!));
  return pid!;
}

/** Empty for a process that has ended since it was listed, as `head` does when it has written all. */
function nameOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
  } catch {
    return '';
  }
}
const commands = (leader: number) => tree(leader).map(nameOf);

/** The process of a hog that has taken it all. */
async function fullTail(leader: number): Promise<number> {
  const tail = () => tree(leader).find((pid) => nameOf(pid) === 'tail');
  const bytes = async () => (await memoryParts(tail() ?? 0)).bytes;
  await expect.poll(bytes, { timeout: 60_000 }).toBeGreaterThan(110 * 2 ** 20);
  return tail()!;
}

test('what takes too much loses its largest process, hears why, and its neighbour keeps everything', async () => {
  const [large, small] = [hog(120), hog(20)];
  const sentences: string[] = [];
  const neighbour: string[] = [];
  for (const [leader, said] of [
    [large, sentences],
    [small, neighbour],
  ] as const)
    ends.push(
      watchMemory({
        leaders: () => [leader],
        mostBytes: 60 * 2 ** 20,
        outOfMemory: () => undefined,
        onKill: (sentence) => said.push(sentence),
      }),
    );
  await expect.poll(() => sentences, { timeout: 60_000 }).toHaveLength(1);
  expect(sentences[0]).toMatch(/took \d+ MB of memory and may take 60: its largest process was ended/);
  await expect.poll(() => commands(large), { timeout: 60_000 }).not.toContain('tail');
  expect(commands(small)).toContain('tail');
  expect(neighbour).toEqual([]);
});

test('a killed process is reported with its name and size', async () => {
  const leader = hog(120);
  await fullTail(leader); // a look while it grows might find all processes together, and not this one alone, above the limit
  const reports: OutOfMemory[] = [];
  ends.push(
    watchMemory({
      leaders: () => [leader],
      mostBytes: 60 * 2 ** 20,
      outOfMemory: () => undefined,
      onKill: (_, report) => reports.push(report),
    }),
  );
  await expect.poll(() => reports, { timeout: 60_000 }).toHaveLength(1);
  const [{ by, ended, largest }] = reports as [OutOfMemory];
  expect(by).toBe('service');
  expect(ended).toEqual([{ pid: expect.any(Number), name: 'tail', bytes: expect.any(Number) }]);
  expect(ended[0]!.bytes).toBeGreaterThan(60 * 2 ** 20);
  expect(largest[0]).toEqual(ended[0]);
});

test('the largest process that has exited is reported as killed by the kernel', async () => {
  const leader = hog(120);
  const pid = await fullTail(leader);
  let looks = 0;
  const reports: OutOfMemory[] = [];
  ends.push(
    watchMemory({
      leaders: () => [leader],
      mostBytes: 130 * 2 ** 20,
      outOfMemory: () => (tree(leader).includes(pid) ? 0 : 1),
      memory: () => 120 * 2 ** 20,
      pids() {
        looks++;
        return tree(leader);
      },
      onKill: (_, report) => reports.push(report),
    }),
  );
  await expect.poll(() => looks, { timeout: 60_000 }).toBeGreaterThan(0);
  process.kill(pid, 'SIGKILL'); // as the kernel does
  await expect.poll(() => reports, { timeout: 60_000 }).toHaveLength(1);
  expect(reports[0]).toMatchObject({ by: 'kernel', mostBytes: 130 * 2 ** 20, ended: [{ pid, name: 'tail' }] });
});

test('a process that the kernel killed is reported once', async () => {
  let count = 3;
  const sentences: string[] = [];
  ends.push(
    watchMemory({
      leaders: () => [],
      mostBytes: 2 ** 30,
      outOfMemory: () => count,
      onKill: (sentence) => sentences.push(sentence),
    }),
  );
  count = 4;
  await expect
    .poll(() => sentences, { timeout: 60_000 })
    .toEqual(["The session's memory ran out (1024 MB), and the kernel ended its largest process."]);
});

test('the processes of sessions that are short of memory are read in turns of the event loop', async () => {
  const seen: string[] = [];
  const session = (name: string) => ({
    leaders: () => [],
    mostBytes: 1,
    outOfMemory: () => 0,
    memory: () => 1,
    pids: () => {
      seen.push(name);
      setImmediate(() => seen.push('turn'));
      return Array<number>(20_000).fill(process.pid);
    },
    onKill: () => {},
  });
  ends.push(watchMemory(session('one')), watchMemory(session('two')));
  await expect.poll(() => seen, { timeout: 60_000 }).toContain('two');
  expect(seen.slice(0, seen.indexOf('two'))).toContain('turn');
});

test.each([
  ['continued after standby', (pids: number[]) => thaw(new Map(pids.map((pid) => [pid, '1'])))],
  ['asked for their shared memory', sharedMemory],
])('thousands of processes are %s in turns of the event loop', async (_, work) => {
  const pids = Array.from({ length: 4000 }, (_, index) => 2 ** 22 + index); // beyond the largest pid of Linux
  let turned = 0;
  const count = () => {
    turned += 1;
    next = setImmediate(count);
  };
  let next = setImmediate(count);
  await work(pids);
  clearImmediate(next);
  expect(turned).toBeGreaterThan(1);
});

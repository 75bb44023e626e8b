import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { FileEvent } from './directory-watch.ts';
import { IN, type Inotify, type Listener } from './inotify.ts';
import { KernelWatch } from './kernel-watch.ts';

/** A kernel that reports when the test says so. */
async function watching(late: { mask: number; name: string }[]) {
  const dir = mkdtempSync(join(tmpdir(), 'corral-kernel-'));
  let report!: Listener;
  const inotify = {
    ended: new Promise(() => {}),
    async watch(_path: string, listener: Listener) {
      report = listener;
      return { wd: 1, close() {} };
    },
    async caughtUp() {
      for (const event of late.splice(0)) report({ ...event, cookie: 7 });
    },
  } as unknown as Inotify;
  const reported: string[] = [];
  const hear = (event: FileEvent | 'over') => void (event !== 'over' && reported.push(`${event.type} ${event.name}`));
  const watch = new KernelWatch(inotify, dir, false, hear);
  await watch.start();
  onTestFinished(() => {
    watch.stop();
    rmSync(dir, { recursive: true, force: true });
  });
  return { report, reported };
}

test('a rename is reported as one also when its second half arrives late', async () => {
  const { report, reported } = await watching([{ mask: IN.MOVED_TO, name: 'b' }]);
  report({ mask: IN.MOVED_FROM, name: 'a', cookie: 7 });
  await expect.poll(() => reported).toEqual(['RENAME a', 'CREATE b']);
});

test('an entry that is moved away is reported as deleted', async () => {
  const { report, reported } = await watching([]);
  for (const name of ['a', 'b', 'c']) report({ mask: IN.MOVED_FROM, name, cookie: name.charCodeAt(0) });
  await expect.poll(() => reported).toEqual(['DELETE a', 'DELETE b', 'DELETE c']);
});

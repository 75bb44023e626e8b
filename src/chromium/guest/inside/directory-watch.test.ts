import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync, appendFileSync, chmodSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { DirectoryWatch, type FileEvent } from './directory-watch.ts';

const open: { stop(): void }[] = [];
afterEach(() => {
  for (const watch of open.splice(0)) watch.stop();
});

async function watching(recursive: boolean, before: (dir: string) => void = () => {}) {
  const dir = mkdtempSync(join(tmpdir(), 'corral-watch-'));
  before(dir);
  const events: FileEvent[] = [];
  let over = false;
  const watch = new DirectoryWatch(
    dir,
    recursive,
    (event) => void (event === 'over' ? (over = true) : events.push(event)),
  );
  open.push(watch, { stop: () => rmSync(dir, { recursive: true, force: true }) });
  await watch.start();
  const told = () => events.map(({ type, path }) => `${type} ${path.slice(dir.length) || '/'}`);
  return {
    dir,
    told,
    isOver: () => over,
    until: (...those: string[]) => vi.waitFor(() => expect(told()).toEqual(those)),
  };
}

test('a file is told as created, written, renamed and deleted, and not when only its rights change', async () => {
  const { dir, until } = await watching(false, (dir) => writeFileSync(join(dir, 'old'), 'x'));
  writeFileSync(join(dir, 'a'), 'x');
  await until('CREATE /a', 'WRITE /a');
  chmodSync(join(dir, 'a'), 0o600);
  renameSync(join(dir, 'a'), join(dir, 'b'));
  await until('CREATE /a', 'WRITE /a', 'RENAME /a', 'CREATE /b');
  appendFileSync(join(dir, 'old'), 'y');
  rmSync(join(dir, 'b'));
  await until('CREATE /a', 'WRITE /a', 'RENAME /a', 'CREATE /b', 'WRITE /old', 'DELETE /b');
});

test('a file that is gone before anybody looked is told all the same', async () => {
  const { dir, until } = await watching(false);
  writeFileSync(join(dir, 'brief'), '');
  rmSync(join(dir, 'brief'));
  await until('CREATE /brief', 'DELETE /brief');
});

test('new directories are watched, with what was in them before they were', async () => {
  const { dir, told } = await watching(true);
  mkdirSync(join(dir, 'a/b/c'), { recursive: true });
  writeFileSync(join(dir, 'a/b/c/deep'), 'x');
  await vi.waitFor(() => expect(told()).toContain('CREATE /a/b/c/deep'));
  writeFileSync(join(dir, 'a/b/later'), 'x');
  await vi.waitFor(() => expect(told()).toContain('CREATE /a/b/later'));
  expect(told().filter((line) => line === 'CREATE /a/b/c/deep')).toHaveLength(1);
  renameSync(join(dir, 'a'), join(dir, 'z'));
  writeFileSync(join(dir, 'z/b/after'), 'x');
  await vi.waitFor(() => expect(told()).toContain('CREATE /z/b/after'));
  expect(told()).toContain('RENAME /a');
});

test('a burst of more events than the kernel keeps ends in the truth', async () => {
  const { dir, told } = await watching(false);
  for (let count = 0; count < 20_000; count++) writeFileSync(join(dir, `f${count}`), '');
  await vi.waitFor(() => expect(new Set(told().filter((line) => line.startsWith('CREATE'))).size).toBe(20_000), {
    timeout: 30_000,
  });
});

test('a watch ends when its directory goes', async () => {
  const { dir, told, isOver } = await watching(true);
  rmSync(dir, { recursive: true });
  await vi.waitFor(() => expect(isOver()).toBe(true));
  expect(told()).toContain('DELETE /');
});

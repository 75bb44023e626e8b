import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync, appendFileSync, chmodSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { DirectoryWatch, type FileEvent } from './directory-watch.ts';
import { startWatch } from './watches.ts';

const open: { stop(): void }[] = [];
afterEach(() => {
  for (const watch of open.splice(0)) watch.stop();
});

type Start = typeof startWatch;

async function watching(start: Start, recursive: boolean, before: (dir: string) => void = () => {}) {
  const dir = mkdtempSync(join(tmpdir(), 'corral-watch-'));
  before(dir);
  const events: FileEvent[] = [];
  let over = false;
  open.push({ stop: () => rmSync(dir, { recursive: true, force: true }) });
  open.push(await start(dir, recursive, (event) => void (event === 'over' ? (over = true) : events.push(event))));
  const lines = () => events.map(({ type, path }) => `${type} ${path.slice(dir.length) || '/'}`);
  return {
    dir,
    events,
    lines,
    isOver: () => over,
    until: (...those: string[]) => vi.waitFor(() => expect(lines()).toEqual(those), { timeout: 60_000 }),
  };
}

async function comparing(...args: ConstructorParameters<typeof DirectoryWatch>) {
  const watch = new DirectoryWatch(...args);
  await watch.start();
  return watch;
}

describe.each([
  { how: 'as the kernel reports', start: startWatch, most: 16_384 },
  { how: 'by comparing, without reports of the kernel', start: comparing, most: 8000 },
])('a watch, $how', ({ start, most }) => {
  test('a file is reported as created, written, renamed and deleted, but not when only its mode changes', async () => {
    const { dir, until } = await watching(start, false, (dir) => writeFileSync(join(dir, 'old'), 'x'));
    writeFileSync(join(dir, 'a'), 'x');
    await until('CREATE /a', 'WRITE /a');
    chmodSync(join(dir, 'a'), 0o600);
    renameSync(join(dir, 'a'), join(dir, 'b'));
    await until('CREATE /a', 'WRITE /a', 'RENAME /a', 'CREATE /b');
    appendFileSync(join(dir, 'old'), 'y');
    rmSync(join(dir, 'b'));
    await until('CREATE /a', 'WRITE /a', 'RENAME /a', 'CREATE /b', 'WRITE /old', 'DELETE /b');
  });

  test('a file that is deleted before it was read is reported', async () => {
    const { dir, until } = await watching(start, false);
    writeFileSync(join(dir, 'brief'), '');
    rmSync(join(dir, 'brief'));
    await until('CREATE /brief', 'DELETE /brief');
  });

  test('new directories are watched, with their existing entries', async () => {
    const { dir, lines } = await watching(start, true);
    mkdirSync(join(dir, 'a/b/c'), { recursive: true });
    writeFileSync(join(dir, 'a/b/c/deep'), 'x');
    await vi.waitFor(() => expect(lines()).toContain('CREATE /a/b/c/deep'), { timeout: 60_000 });
    writeFileSync(join(dir, 'a/b/later'), 'x');
    await vi.waitFor(() => expect(lines()).toContain('CREATE /a/b/later'), { timeout: 60_000 });
    expect(lines().filter((line) => line === 'CREATE /a/b/c/deep')).toHaveLength(1);
    renameSync(join(dir, 'a'), join(dir, 'z'));
    writeFileSync(join(dir, 'z/b/after'), 'x');
    await vi.waitFor(() => expect(lines()).toContain('CREATE /z/b/after'), { timeout: 60_000 });
    expect(lines()).toContain('RENAME /a');
  });

  test('a burst of more events than are kept ends in the truth', { timeout: 180_000 }, async () => {
    const { dir, events } = await watching(start, false);
    const files = most + 1000;
    for (let count = 0; count < files; count++) writeFileSync(join(dir, `f${count}`), '');
    const made = () => new Set(events.filter(({ type }) => type === 'CREATE').map(({ path }) => path)).size;
    await vi.waitFor(() => expect(made()).toBe(files), { timeout: 150_000, interval: 1000 });
  });

  test('a watch ends when its directory goes', async () => {
    const { dir, lines, isOver } = await watching(start, true);
    rmSync(dir, { recursive: true });
    await vi.waitFor(() => expect(isOver()).toBe(true), { timeout: 60_000 });
    expect(lines()).toContain('DELETE /');
  });
});

describe('a watch, as the kernel reports', () => {
  test('reports many short-lived files completely and in order while the machine is busy, with both halves of each rename', async () => {
    const { dir, events, lines } = await watching(startWatch, true);
    const busy = Array.from({ length: 4 }, () => spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }));
    try {
      const lives = 500; // 3000 events; the kernel keeps 16,384
      for (let life = 0; life < lives; life++) {
        writeFileSync(join(dir, `a${life}`), 'x');
        renameSync(join(dir, `a${life}`), join(dir, `b${life}`));
        rmSync(join(dir, `b${life}`));
      }
      await vi.waitFor(() => expect(lines().at(-1)).toBe(`DELETE /b${lives - 1}`), { timeout: 60_000 });
      const life = (n: number) => [`CREATE /a${n}`, `WRITE /a${n}`, `RENAME /a${n}`, `CREATE /b${n}`, `DELETE /b${n}`];
      expect(lines()).toEqual(Array.from({ length: lives }, (_, n) => life(n)).flat());
    } finally {
      for (const child of busy) child.kill('SIGKILL');
    }
    const renames = events.filter(({ type }) => type === 'RENAME').map(({ cookie }) => cookie);
    const arrivals = events.filter(({ path }) => /b\d+$/.test(path)).map(({ cookie }) => cookie);
    expect(new Set(renames).size).toBe(renames.length);
    expect(arrivals.filter((cookie) => cookie !== undefined)).toEqual(renames);
  });

  test('follows a renamed directory, and stops watching a directory that is moved away', async () => {
    const away = mkdtempSync(join(tmpdir(), 'corral-away-'));
    open.push({ stop: () => rmSync(away, { recursive: true, force: true }) });
    const { dir, until, lines } = await watching(startWatch, true, (dir) =>
      mkdirSync(join(dir, 'a/b'), { recursive: true }),
    );
    renameSync(join(dir, 'a'), join(dir, 'z'));
    writeFileSync(join(dir, 'z/b/one'), '');
    await until('RENAME /a', 'CREATE /z', 'CREATE /z/b/one');
    renameSync(join(dir, 'z'), join(away, 'z'));
    writeFileSync(join(away, 'z/b/two'), '');
    writeFileSync(join(dir, 'end'), '');
    await vi.waitFor(() => expect(lines()).toContain('CREATE /end'), { timeout: 60_000 });
    expect(lines().slice(3)).toEqual(expect.arrayContaining(['DELETE /z', 'CREATE /end']));
  });

  test('two watches of one directory get the same events, and one continues when the other has ended', async () => {
    const one = await watching(startWatch, false);
    const events: string[] = [];
    const other = await startWatch(one.dir, false, (event) => void (event !== 'over' && events.push(event.type)));
    writeFileSync(join(one.dir, 'a'), '');
    await one.until('CREATE /a');
    await vi.waitFor(() => expect(events).toEqual(['CREATE']), { timeout: 60_000 });
    other.stop();
    writeFileSync(join(one.dir, 'b'), '');
    await one.until('CREATE /a', 'CREATE /b');
    expect(events).toEqual(['CREATE']);
  });
});

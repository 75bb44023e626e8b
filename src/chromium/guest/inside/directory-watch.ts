import { watch as watchDirectory, type BigIntStats, type FSWatcher } from 'node:fs';
import { lstat, opendir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { Fault } from './fault.ts';
import { isIncoming } from './partial-files.ts';

export interface FileEvent {
  type: 'CREATE' | 'WRITE' | 'DELETE' | 'RENAME' | 'OVERFLOW';
  path: string;
  name?: string;
  is_dir?: boolean;
  /** A RENAME and its CREATE have the same number. */
  cookie?: number;
  dropped?: number;
}

/** The state of an entry at the last look. */
interface Known {
  ino: bigint;
  mtime: bigint;
  size: bigint;
  isDir: boolean;
  /** CREATE was reported, and WRITE not yet. */
  fresh: boolean;
}

interface Directory {
  watcher: FSWatcher;
  known: Map<string, Known>;
}

/** Waits in the outbox until it is known whether a vanished entry reappears under another name. */
interface Pending {
  event: FileEvent;
  settled: boolean;
  /** The known entries of a vanished directory and of those below it, by path. */
  below: Map<string, Map<string, Known>>;
}

const MOST_DIRECTORIES = 20_000;
/** The kernel keeps 16,384 events and Node does not report an overflow: after this many, all directories are compared. */
const BURST = 8000;
/** How long a vanished entry may take to reappear under another name. */
const RENAME_MS = 50;
/** How long, when reports still wait to be looked at: a busy machine takes its time. Later events wait as long. */
const BUSY_RENAME_MS = 2000;
/** How long after an entry was seen to vanish a report about it may arrive. How long that then waits to be looked at does not count. */
const ECHO_MS = 200;

/**
 * For machines on which inotify.ts does not run. Watches a directory, and with `recursive` those below it. Node reports the directory of a
 * change; the change is found by comparing the directory with its known state. So after a missing report, the next comparison finds the
 * change. A file that existed for less time than a comparison takes is reported as created and deleted.
 */
export class DirectoryWatch {
  readonly #root: string;
  readonly #recursive: boolean;
  readonly #report: (event: FileEvent | 'over') => void;
  readonly #directories = new Map<string, Directory>();
  readonly #vanished = new Map<bigint, Pending>();
  readonly #echoes = new Map<string, number>();
  #hints: { dir: string; name: string; at: number }[] = [];
  #outbox: Pending[] = [];
  #working = false;
  #lookEverywhere = false;
  #over = false;

  constructor(root: string, recursive: boolean, report: (event: FileEvent | 'over') => void) {
    this.#root = root;
    this.#recursive = recursive;
    this.#report = report;
  }

  async start(): Promise<void> {
    try {
      await this.#add(this.#root, false);
    } catch (error) {
      this.stop();
      throw error;
    }
  }

  stop() {
    this.#over = true;
    for (const { watcher } of this.#directories.values()) watcher.close();
    this.#directories.clear();
    this.#hints = [];
  }

  /** Watches the directory before reading it, so that no change is missed in between. */
  async #add(path: string, announce: boolean, before?: Map<string, Known>): Promise<void> {
    if (this.#over || this.#directories.has(path)) return;
    if (this.#directories.size >= MOST_DIRECTORIES)
      throw new Fault('too_many_watches', `There are more than ${MOST_DIRECTORIES} directories to watch.`);
    let watcher: FSWatcher;
    try {
      watcher = watchDirectory(path, { encoding: 'utf8' }, (_kind, name) => this.#hint(path, name ?? ''));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
      throw new Fault('too_many_watches', 'The kernel watches as many directories as it may.');
    }
    watcher.on('error', () => this.#hint(path, ''));
    this.#directories.set(path, { watcher, known: before ?? new Map() });
    await this.#look(path, announce);
  }

  /** Stops watching a directory and those below; answers with their known entries. */
  #remove(path: string): Map<string, Map<string, Known>> {
    const below = new Map<string, Map<string, Known>>();
    for (const [dir, { watcher, known }] of this.#directories) {
      if (dir !== path && !dir.startsWith(`${path}/`)) continue;
      watcher.close();
      this.#directories.delete(dir);
      below.set(dir.slice(path.length), known);
    }
    return below;
  }

  #hint(dir: string, name: string) {
    if (this.#over) return;
    if (this.#hints.length < BURST) this.#hints.push({ dir, name, at: performance.now() });
    else this.#lookEverywhere = true;
    if (!this.#working) void this.#work();
  }

  async #work(): Promise<void> {
    this.#working = true;
    try {
      for (;;) {
        const hint = this.#hints.shift();
        if (hint) await this.#compare(hint.dir, hint.name, hint.at);
        else if (this.#lookEverywhere) {
          this.#lookEverywhere = false;
          for (const dir of this.#directories.keys()) await this.#look(dir, true);
        } else return;
      }
    } catch (error) {
      process.stderr.write(`a watch failed: ${(error as Error).message}\n`);
    } finally {
      this.#working = false;
    }
  }

  /** Compares all of a directory with its known entries. */
  async #look(dir: string, announce: boolean): Promise<void> {
    const directory = this.#directories.get(dir);
    if (!directory) return;
    const names = new Set(directory.known.keys());
    try {
      for await (const { name } of await opendir(dir)) names.add(name);
    } catch {
      return; // the directory is removed; its parent's watch reports it
    }
    for (const name of names) {
      if (announce) await this.#compare(dir, name);
      else await this.#remember(dir, name);
    }
  }

  async #remember(dir: string, name: string): Promise<void> {
    const path = join(dir, name);
    const found = await statOf(path);
    if (!found || isIncoming(name)) return;
    this.#directories.get(dir)?.known.set(name, known(found, false));
    if (found.isDirectory() && this.#recursive) await this.#addBelow(path, false);
  }

  async #compare(dir: string, name: string, at = performance.now()): Promise<void> {
    const directory = this.#directories.get(dir);
    if (!directory || isIncoming(name)) return;
    const path = join(dir, name);
    const found = name === '' ? undefined : await statOf(path);
    const before = directory.known.get(name);
    if (found && before && found.ino === before.ino) this.#changed(path, before, found);
    else if (found && before && !before.isDir && !found.isDirectory()) {
      directory.known.set(name, known(found, false)); // another file replaced it
      this.#say({ type: 'WRITE', path, name, is_dir: false });
    } else {
      if (before) this.#went(directory, path, before);
      if (found) await this.#came(directory, path, found);
      else if (!before) await this.#cameAndWent(dir, name, at);
    }
  }

  #changed(path: string, before: Known, found: BigIntStats) {
    if (before.isDir) return;
    const written = before.fresh || before.mtime !== found.mtimeNs || before.size !== found.size; // not only its permissions
    Object.assign(before, known(found, false));
    if (written) this.#say({ type: 'WRITE', path, name: basename(path), is_dir: false });
  }

  #went(directory: Directory, path: string, before: Known) {
    directory.known.delete(basename(path));
    const below = before.isDir ? this.#remove(path) : new Map<string, Map<string, Known>>();
    const pending = this.#say({ type: 'DELETE', path, name: basename(path), is_dir: before.isDir }, false, below);
    this.#echoes.set(path, performance.now());
    this.#vanished.set(before.ino, pending);
    const latest = performance.now() + BUSY_RENAME_MS;
    setTimeout(() => this.#settle(pending, before.ino, latest), RENAME_MS);
  }

  #settle(pending: Pending, ino: bigint, latest: number) {
    if (this.#working && !pending.settled && performance.now() < latest) {
      setTimeout(() => this.#settle(pending, ino, latest), RENAME_MS);
      return;
    }
    pending.settled = true;
    if (this.#vanished.get(ino) === pending) this.#vanished.delete(ino);
    this.#pump();
  }

  async #came(directory: Directory, path: string, found: BigIntStats): Promise<void> {
    const isDir = found.isDirectory();
    const pending = this.#vanished.get(found.ino);
    this.#vanished.delete(found.ino);
    if (pending) {
      pending.event.type = 'RENAME';
      pending.settled = true;
    }
    directory.known.set(basename(path), known(found, !pending && !isDir && found.size > 0n));
    this.#say({ type: 'CREATE', path, name: basename(path), is_dir: isDir });
    if (!isDir || !this.#recursive) return;
    for (const [under, known] of pending?.below ?? []) await this.#addBelow(path + under, true, known);
    await this.#addBelow(path, true);
  }

  /** The entry existed for less time than the look took. Or the hint is about the directory itself. */
  async #cameAndWent(dir: string, name: string, at: number): Promise<void> {
    if (name === '' || name === basename(dir)) {
      if (dir !== this.#root || (await statOf(dir))) return;
      this.#say({ type: 'DELETE', path: dir, name: basename(dir), is_dir: true });
      return this.#report('over');
    }
    this.#hints = this.#hints.filter((hint) => hint.dir !== dir || hint.name !== name);
    const path = join(dir, name);
    for (const [earlier, since] of this.#echoes) if (at - since > ECHO_MS) this.#echoes.delete(earlier);
    if (this.#echoes.has(path)) return;
    this.#echoes.set(path, performance.now());
    this.#say({ type: 'CREATE', path, name });
    this.#say({ type: 'DELETE', path, name });
  }

  async #addBelow(path: string, announce: boolean, before?: Map<string, Known>): Promise<void> {
    await this.#add(path, announce, before).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'too_many_watches') this.#say({ type: 'OVERFLOW', path, name: basename(path), is_dir: true });
    });
  }

  #say(event: FileEvent, settled = true, below: Pending['below'] = new Map()): Pending {
    const pending = { event, settled, below };
    this.#outbox.push(pending);
    this.#pump();
    return pending;
  }

  #pump() {
    while (this.#outbox[0]?.settled) this.#report(this.#outbox.shift()!.event);
  }
}

async function statOf(path: string): Promise<BigIntStats | undefined> {
  return lstat(path, { bigint: true }).catch(() => undefined);
}

function known(found: BigIntStats, fresh: boolean): Known {
  return { ino: found.ino, mtime: found.mtimeNs, size: found.size, isDir: found.isDirectory(), fresh };
}

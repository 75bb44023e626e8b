import { opendir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { FileEvent } from './directory-watch.ts';
import { Fault } from './fault.ts';
import { isIncoming } from './partial-files.ts';
import { IN, type Inotify, type KernelEvent, type KernelWatched } from './inotify.ts';

interface Directory {
  name: string;
  /** The root has none. */
  parent: Directory | undefined;
  watched: KernelWatched | undefined;
  /** The reported entries, with whether each is a directory. */
  readonly entries: Map<string, boolean>;
  readonly below: Map<string, Directory>;
  /** Entries that were found and reported. The kernel may still report their creation. */
  readonly found: Set<string>;
}

interface Queued extends KernelEvent {
  directory: Directory;
  at: number;
  /** The second half of a rename: the directory that was renamed, if it is watched. */
  renamed?: Directory | undefined;
  isSecondHalf?: boolean;
}

const MOST_DIRECTORIES = 20_000;
/**
 * How long the second half of a rename may take to follow the first. The kernel queues both in one system call, but on a busy machine the
 * renaming process may have to wait for the processor between the two.
 */
const RENAME_MS = 500;

/**
 * Watches a directory, and with `recursive` those below it, and passes on the reports of the kernel in their order. Entries that were
 * created in a new directory before it was watched are found by reading it. When the kernel has lost events, OVERFLOW is reported, and
 * then the changes that a comparison of every directory finds.
 */
export class KernelWatch {
  readonly #inotify: Inotify;
  readonly #root: Directory;
  readonly #path: string;
  readonly #recursive: boolean;
  readonly #report: (event: FileEvent | 'over') => void;
  #queue: Queued[] = [];
  #arrived: (() => void) | undefined;
  #count = 0;
  /** All reports of the kernel up to this time were received. */
  #caughtUpAt = -Infinity;
  #working = true; // until it has started
  /** The last overflow that was dealt with. */
  #overflows = 0;
  #recovering = false;
  #over = false;

  constructor(inotify: Inotify, path: string, recursive: boolean, report: (event: FileEvent | 'over') => void) {
    this.#inotify = inotify;
    this.#path = path;
    this.#recursive = recursive;
    this.#report = report;
    this.#root = directory('', undefined);
  }

  async start(): Promise<void> {
    try {
      await this.#watch(this.#root);
      await this.#read(this.#root, false);
    } catch (error) {
      this.stop();
      throw error;
    }
    void this.#inotify.ended.then(() => {
      if (this.#over) return;
      this.#say('OVERFLOW', this.#root, '', true);
      this.#report('over');
    });
    void this.#work();
  }

  stop() {
    this.#over = true;
    this.#queue = [];
    this.#arrived?.();
    this.#forget(this.#root);
  }

  async #watch(one: Directory): Promise<void> {
    if (this.#count >= MOST_DIRECTORIES)
      throw new Fault('too_many_watches', `There are more than ${MOST_DIRECTORIES} directories to watch.`);
    const isRoot = one === this.#root;
    const watched = await this.#inotify.watch(this.#pathOf(one), (event) => this.#hear(one, event), { follow: isRoot });
    one.watched = watched;
    this.#count++;
    if (this.#over) this.#forget(one);
  }

  /** Stops watching a directory and those below it. */
  #forget(one: Directory) {
    one.parent?.below.delete(one.name);
    const left = [one];
    for (let next; (next = left.pop());) {
      if (next.watched) this.#count--;
      next.watched?.close();
      next.watched = undefined;
      left.push(...next.below.values());
      next.below.clear();
    }
  }

  /** Reads a directory after its watch began, so that nothing is missed in between. */
  async #read(one: Directory, announce: boolean): Promise<void> {
    const there = new Set<string>();
    try {
      for await (const entry of await opendir(this.#pathOf(one))) {
        if (this.#over) return;
        there.add(entry.name);
        if (!isIncoming(entry.name)) await this.#find(one, entry.name, entry.isDirectory(), announce);
      }
    } catch {
      return; // it was removed, which the kernel reports, or may not be read
    }
    if (!announce) return;
    for (const [name, isDir] of one.entries) if (!there.has(name)) this.#remove(one, name, isDir, 'DELETE');
  }

  async #find(one: Directory, name: string, isDir: boolean, announce: boolean): Promise<void> {
    const isNew = !one.entries.has(name);
    one.entries.set(name, isDir);
    if (announce && isNew) {
      one.found.add(name);
      this.#say('CREATE', one, name, isDir);
    }
    if (isDir && this.#recursive) await this.#descend(one, name, announce);
  }

  async #descend(parent: Directory, name: string, announce: boolean): Promise<void> {
    const known = parent.below.get(name);
    if (known) return announce && this.#recovering ? this.#read(known, true) : undefined;
    const one = directory(name, parent);
    parent.below.set(name, one);
    try {
      await this.#watch(one);
    } catch (error) {
      parent.below.delete(name);
      // Any other error means that it was removed, became something else, or may not be read.
      if ((error as { code?: string }).code === 'too_many_watches') this.#say('OVERFLOW', parent, name, true);
      return;
    }
    await this.#read(one, announce);
  }

  #hear(one: Directory, event: KernelEvent) {
    if (this.#over) return;
    this.#queue.push({ ...event, directory: one, at: performance.now() });
    this.#arrived?.();
    if (!this.#working) void this.#work();
  }

  /** One event after the other: the next may be about a directory that this one is about to watch. */
  async #work(): Promise<void> {
    this.#working = true;
    try {
      while (this.#queue.length > 0) {
        const batch = this.#queue;
        this.#queue = [];
        for (let at = 0; at < batch.length && !this.#over; at++) {
          const event = batch[at]!;
          if (event.mask & IN.MOVED_FROM) await this.#pair(event, batch, at + 1);
          const more = this.#handle(event);
          if (more) await more;
        }
      }
    } catch (error) {
      process.stderr.write(`a watch failed: ${(error as Error).message}\n`);
    } finally {
      this.#working = false;
    }
  }

  /** Finds the second half of a rename, among the events that have arrived or arrive shortly. Without it the entry was moved out of the watched directories. */
  async #pair(first: Queued, batch: Queued[], from: number): Promise<void> {
    if (isIncoming(first.name)) return;
    const isSecond = ({ mask, cookie }: Queued) => (mask & IN.MOVED_TO) !== 0 && cookie === first.cookie;
    let second = batch.find((event, at) => at >= from && isSecond(event)) ?? this.#queue.find(isSecond);
    while (!second && !this.#over) {
      const now = performance.now();
      const left = first.at + RENAME_MS - now;
      if (left <= 0 && this.#caughtUpAt >= first.at + RENAME_MS) return;
      if (left <= 0) {
        // On a busy machine the time may pass while the report is on its way.
        await this.#inotify.caughtUp();
        this.#caughtUpAt = now;
        second = this.#queue.find(isSecond);
        continue;
      }
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left);
        this.#arrived = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.#arrived = undefined;
      second = this.#queue.find(isSecond);
    }
    if (!second) return;
    first.isSecondHalf = false; // it has one
    second.isSecondHalf = true;
    second.renamed = first.directory.below.get(first.name);
  }

  #handle(event: Queued): Promise<void> | undefined {
    const { directory: one, mask, name, cookie } = event;
    if (mask & IN.Q_OVERFLOW) return this.#recover(cookie);
    if (mask & IN.IGNORED) return void (one !== this.#root && this.#forget(one));
    if (mask & (IN.DELETE_SELF | IN.MOVE_SELF)) return void (one === this.#root && this.#end());
    if (isIncoming(name) || !one.watched) return undefined;
    const isDir = (mask & IN.ISDIR) !== 0;
    if (mask & IN.MODIFY) this.#say('WRITE', one, name, false);
    else if (mask & IN.DELETE) this.#remove(one, name, isDir, 'DELETE');
    else if (mask & IN.MOVED_FROM) {
      const paired = event.isSecondHalf === false;
      this.#remove(one, name, isDir, paired ? 'RENAME' : 'DELETE', paired ? cookie : undefined);
    } else return this.#add(event, isDir);
    return undefined;
  }

  #add(
    { directory: one, name, mask, cookie, renamed, isSecondHalf }: Queued,
    isDir: boolean,
  ): Promise<void> | undefined {
    const wasFound = one.found.delete(name);
    const replaces = one.entries.has(name);
    one.entries.set(name, isDir);
    const arrived = (mask & IN.MOVED_TO) !== 0;
    // A file that the service writes is moved to its place when it is complete.
    if (arrived && !isSecondHalf && replaces && !isDir && !wasFound) this.#say('WRITE', one, name, false);
    else if (!wasFound) this.#say('CREATE', one, name, isDir, isSecondHalf ? cookie : undefined);
    if (!isDir || !this.#recursive) return undefined;
    if (renamed && !one.below.has(name)) {
      renamed.parent?.below.delete(renamed.name);
      renamed.parent = one;
      renamed.name = name;
      one.below.set(name, renamed);
      return undefined;
    }
    return this.#descend(one, name, true);
  }

  #remove(one: Directory, name: string, isDir: boolean, type: 'DELETE' | 'RENAME', cookie?: number) {
    one.entries.delete(name);
    one.found.delete(name);
    this.#say(type, one, name, isDir, cookie);
    const below = one.below.get(name);
    if (below && type === 'DELETE') this.#forget(below);
  }

  /** The kernel has lost events: every directory is read again. */
  async #recover(overflow: number): Promise<void> {
    if (overflow <= this.#overflows) return; // each directory hears of it
    this.#overflows = overflow;
    this.#recovering = true;
    this.#say('OVERFLOW', this.#root, '', true);
    await this.#read(this.#root, true);
    this.#recovering = false;
  }

  #end() {
    this.#say('DELETE', this.#root, '', true);
    this.#report('over');
  }

  #say(type: FileEvent['type'], one: Directory, name: string, isDir: boolean, cookie?: number) {
    const path = name === '' ? this.#pathOf(one) : join(this.#pathOf(one), name);
    const event = { type, path, name: name === '' ? basename(path) : name, is_dir: isDir };
    this.#report(cookie === undefined ? event : { ...event, cookie });
  }

  #pathOf(one: Directory): string {
    return one.parent ? join(this.#pathOf(one.parent), one.name) : this.#path;
  }
}

const directory = (name: string, parent: Directory | undefined): Directory => ({
  name,
  parent,
  watched: undefined,
  entries: new Map(),
  below: new Map(),
  found: new Set(),
});

import { randomBytes } from 'node:crypto';
import { stat } from 'node:fs/promises';
import type { Args } from '../protocol.ts';
import { Fault } from './fault.ts';
import type { Telling } from './answer-stream.ts';
import { DirectoryWatch, type FileEvent } from './directory-watch.ts';
import { openInotify } from './inotify.ts';
import { KernelWatch } from './kernel-watch.ts';
import { Line } from './line.ts';

export const watchAsks = { watch, unwatch, watch_events };

const MOST_WATCHES = 100;

interface Watch {
  readonly root: string;
  readonly events: { stop(): void };
  /** Events that happened without a reader. */
  waiting: Line;
  readonly readers: Set<Line>;
  over: boolean;
}

const watches = new Map<string, Watch>();

async function watch({ path, recursive }: Args<'watch'>, stream: Telling<'watch'>): Promise<void> {
  if (!(await stat(path)).isDirectory()) throw new Fault('ENOTDIR', `'${path}' is not a directory.`);
  if (watches.size >= MOST_WATCHES)
    throw new Fault('too_many_watches', `The session has ${MOST_WATCHES} watches already; stop one first.`);
  const id = randomBytes(12).toString('hex');
  const early: (FileEvent | 'over')[] = [];
  let report = (event: FileEvent | 'over'): void => void early.push(event);
  const events = await startWatch(path, recursive, (event) => report(event));
  const one: Watch = { root: path, events, waiting: new Line(path), readers: new Set(), over: false };
  watches.set(id, one);
  report = (event) => {
    if (event === 'over') return end(id);
    if (one.readers.size === 0) one.waiting.add(event);
    for (const reader of one.readers) reader.add(event);
  };
  early.forEach(report);
  await stream.json({ watch_id: id });
}

/** The kernel's own reports, or comparisons if they are not available. */
export async function startWatch(
  path: string,
  recursive: boolean,
  report: (event: FileEvent | 'over') => void,
): Promise<{ stop(): void }> {
  const kernel = await openInotify();
  if (!kernel) {
    process.stderr.write(
      'watches compare directories: perl, which reads the reports of the kernel, does not run here\n',
    );
    const watch = new DirectoryWatch(path, recursive, report);
    await watch.start();
    return watch;
  }
  const watch = new KernelWatch(kernel.inotify, path, recursive, report);
  try {
    await watch.start();
  } catch (error) {
    kernel.close();
    throw error;
  }
  return {
    stop() {
      watch.stop();
      kernel.close();
    },
  };
}

async function unwatch({ watch_id }: Args<'unwatch'>, stream: Telling<'unwatch'>): Promise<void> {
  find(watch_id);
  end(watch_id);
  watches.delete(watch_id);
  await stream.json({});
}

/** The waiting events, then new ones as they happen. Events not sent when a reader disconnects are kept for the next. */
async function watch_events({ watch_id }: Args<'watch_events'>, stream: Telling<'watch_events'>): Promise<void> {
  const one = find(watch_id);
  const line = one.waiting;
  one.waiting = new Line(one.root);
  one.readers.add(line);
  if (one.over) line.end();
  try {
    await stream.json({});
    while (!stream.gone.aborted) {
      const event = line.take();
      if (event) await stream.json(event);
      else if (line.ended) return;
      else await line.more(stream.gone);
    }
  } finally {
    one.readers.delete(line);
    if (one.readers.size === 0) one.waiting = line;
  }
}

/** The directory was removed, or the watch was stopped: past events can still be read. */
function end(id: string) {
  const one = watches.get(id);
  if (!one || one.over) return;
  one.over = true;
  one.events.stop();
  for (const reader of one.readers) reader.end();
}

function find(id: string): Watch {
  const found = watches.get(id);
  if (!found) throw new Fault('no_watch', 'There is no such watch.');
  return found;
}

import { SourceFailure } from './source.ts';

interface Waiting {
  of: string;
  begin: () => void;
}

/**
 * Runs so many operations at a time, and so many of one provider; others wait for their turn. An answer of a store, and a thread of the SDK,
 * take some megabytes each, and every key can cause many at once. A store that is slow must not take the turns of the others.
 */
export function turns({ atOnce, each, waitMs }: { atOnce: number; each: number; waitMs: number }) {
  let running = 0;
  const ofEach = new Map<string, number>();
  const line: Waiting[] = [];

  const isFree = (of: string) => running < atOnce && (ofEach.get(of) ?? 0) < each;
  function count(of: string, by: 1 | -1): void {
    running += by;
    const left = (ofEach.get(of) ?? 0) + by;
    if (left === 0) ofEach.delete(of);
    else ofEach.set(of, left);
  }

  const turn = (of: string) =>
    new Promise<void>((resolve, reject) => {
      const waiting: Waiting = {
        of,
        begin() {
          clearTimeout(late);
          resolve();
        },
      };
      const late = setTimeout(() => {
        line.splice(line.indexOf(waiting), 1);
        reject(new SourceFailure('busy', 'Too many requests to stores are running already. Try again in a moment.'));
      }, waitMs);
      line.push(waiting);
    });

  /** The first that may begin takes the place that is free. */
  function next(): void {
    const at = line.findIndex(({ of }) => isFree(of));
    if (at === -1) return;
    const [waiting] = line.splice(at, 1);
    count(waiting!.of, 1);
    waiting!.begin();
  }

  return async <T>(of: string, work: () => Promise<T>): Promise<T> => {
    if (isFree(of)) count(of, 1);
    else await turn(of);
    try {
      return await work();
    } finally {
      count(of, -1);
      next();
    }
  };
}

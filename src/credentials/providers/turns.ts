import { SourceFailure } from './source.ts';

/**
 * Runs so many operations at a time; others wait for their turn. An answer of a store, and a thread of the SDK, take some
 * megabytes each, and anyone with a key can ask for many at once.
 */
export function turns(atOnce: number, waitMs: number) {
  let running = 0;
  const line: (() => void)[] = [];

  const turn = () =>
    new Promise<void>((resolve, reject) => {
      const begin = () => {
        clearTimeout(late);
        resolve();
      };
      const late = setTimeout(() => {
        line.splice(line.indexOf(begin), 1);
        reject(new SourceFailure('busy', `${atOnce} requests to stores are running already. Try again in a moment.`));
      }, waitMs);
      line.push(begin);
    });

  return async <T>(work: () => Promise<T>): Promise<T> => {
    if (running < atOnce) running++;
    else await turn();
    try {
      return await work();
    } finally {
      const next = line.shift(); // it takes this one's place
      if (next) next();
      else running--;
    }
  };
}

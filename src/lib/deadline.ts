/** A call did not finish in time. The message is a sentence for the user. */
export class Overdue extends Error {
  override readonly name = 'Overdue';

  constructor(party: string, ms: number, what = '') {
    super(`${party} did not answer within ${ms / 1000} s${what && ` (${what})`}.`);
  }
}

/**
 * The result of `work`, or an error when it takes longer: an `Overdue` of this name, or the given one. The work is not cancelled, so its
 * parts need deadlines of their own.
 */
export function within<T>(ms: number, late: string | (() => Error), work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const fail = () => reject(typeof late === 'string' ? new Overdue(late, ms) : late());
    const timer = setTimeout(fail, ms);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/** Waits for `work`, but not longer than this. True if it finished in time; rejects if it failed in time. */
export function finishedWithin(ms: number, work: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(false), ms).unref();
    work.then(() => resolve(true), reject).finally(() => clearTimeout(timer));
  });
}

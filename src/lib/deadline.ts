/** A call did not finish in time. The message is a sentence for the user. */
export class Overdue extends Error {
  override readonly name = 'Overdue';

  constructor(who: string, ms: number, what = '') {
    super(`${who} did not answer within ${ms / 1000} s${what && ` (${what})`}.`);
  }
}

/** The result of `work`, or an `Overdue` when it takes longer. The work is not cancelled, so its parts need deadlines of their own. */
export function within<T>(ms: number, who: string, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Overdue(who, ms)), ms);
    work.then(resolve, reject).finally(() => clearTimeout(late));
  });
}

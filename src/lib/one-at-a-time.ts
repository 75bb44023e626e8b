/** Runs one piece of work after the other. Work that fails does not keep the next from running. */
export function oneByOne(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const done = last.then(work);
    last = done.catch(() => {});
    return done;
  };
}

/** Runs work of the same key one after the other. Work that fails does not keep the next from running. */
export function oneAtATime(): <T>(key: string, work: () => Promise<T>) => Promise<T> {
  const last = new Map<string, Promise<unknown>>();
  return (key, work) => {
    const done = (last.get(key) ?? Promise.resolve()).then(work);
    const over = done
      .catch(() => {})
      .then(() => {
        if (last.get(key) === over) last.delete(key);
      });
    last.set(key, over);
    return done;
  };
}

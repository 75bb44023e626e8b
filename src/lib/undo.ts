/** Runs `work`. If it throws, runs the steps it registered, newest first, and rethrows. */
export async function undoOnFailure<T>(work: (undo: (step: () => unknown) => void) => Promise<T>): Promise<T> {
  const steps: (() => unknown)[] = [];
  try {
    return await work((step) => steps.push(step));
  } catch (error) {
    // A step that fails must not keep the older ones from running, nor hide what went wrong first.
    for (const step of steps.reverse())
      await Promise.resolve()
        .then(step)
        .catch(() => {});
    throw error;
  }
}

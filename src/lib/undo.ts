/**
 * Runs `work`. If it throws, runs the steps that it registered, newest first, and rethrows. If what `work` opened
 * outlives it, `undoAll` closes that, once, by the same steps in the same order. It rejects with the first failure, after
 * the last step.
 */
export async function undoOnFailure<T>(
  work: (undo: (step: () => unknown) => void, undoAll: () => Promise<void>) => Promise<T>,
): Promise<T> {
  const steps: (() => unknown)[] = [];
  let undone: Promise<void> | undefined;

  async function undoSteps(): Promise<void> {
    const failures: unknown[] = [];
    for (const step of steps.reverse())
      // A step that fails must not keep the older ones from running.
      await Promise.resolve()
        .then(step)
        .catch((error: unknown) => failures.push(error));
    if (failures.length > 0) throw failures[0];
  }
  const undoAll = () => (undone ??= undoSteps());

  try {
    return await work((step) => steps.push(step), undoAll);
  } catch (error) {
    await undoAll().catch(() => {}); // the first error is the one to report
    throw error;
  }
}

/**
 * Runs work until a signal interrupts it, and then returns, so that the caller can clean up. A second signal ends the process at once.
 */
export async function untilInterrupted(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const ending = new AbortController();
  const signals = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;
  const end = (signal: NodeJS.Signals) => {
    const code = signals[signal as keyof typeof signals];
    if (ending.signal.aborted) process.exit(code);
    process.exitCode = code;
    ending.abort();
  };
  for (const signal of Object.keys(signals)) process.on(signal, end);
  try {
    await work(ending.signal);
  } catch (error) {
    if (!ending.signal.aborted) throw error;
  } finally {
    for (const signal of Object.keys(signals)) process.off(signal, end);
  }
}

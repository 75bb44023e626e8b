import { onTestFinished, vi } from 'vitest';

/** Until the test is over, a millisecond passes with each look at the clock, so that work in turns is over after a few steps. */
export function slowClock(): void {
  let now = performance.now();
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => ++now);
  onTestFinished(() => clock.mockRestore());
}

import { pause, type Flow } from './flow.ts';

/** A code that is valid for less is likely to arrive too late. */
const leastLeft = 3000;

/**
 * The next one-time code, of a window that no code was typed from: sites refuse a code that they have seen, and some lock
 * the account for it. Waits for the next window when this one is used or almost over. Undefined when none can be made.
 */
export async function nextCode(flow: Flow, signal: AbortSignal): Promise<string | undefined> {
  for (;;) {
    // A store that does not answer must not end the login: a person may have the code.
    const code = await flow.input.totp().catch(() => undefined);
    if (!code) return undefined;
    const left = code.expiresAt.getTime() - flow.now();
    const used = flow.lastCounter !== undefined && code.counter <= flow.lastCounter;
    if (!used && left >= leastLeft) {
      flow.lastCounter = code.counter;
      flow.generatedCodes++;
      flow.scrub.add(code.code);
      return code.code;
    }
    // The clock of the one that made the code may differ a little from this one: ask again soon after.
    await pause(Math.max(left, 0) + 100, signal);
  }
}

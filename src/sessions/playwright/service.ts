import type { Guest, Stream } from '../../chromium/guest/guest.ts';
import { Outcome, OutcomePart } from '../../chromium/guest/protocol.ts';
import { errors } from '../../errors.ts';
import { bytesFrom, inside, nextOf } from '../inside.ts';
import type { Hold } from '../holds.ts';
import type { ExecuteRequest, ExecuteResult } from './schema.ts';

/** The longest wait for earlier runs, on top of the code's own timeout. */
const TURN_MS = 10 * 60_000;

/** Runs code next to the browser, one run after the other. A client that hangs up stops its run. */
export function execute(
  { engine: { guest } }: Hold,
  { code, timeout_sec = 60 }: ExecuteRequest,
  hungUp: AbortSignal,
): Promise<ExecuteResult> {
  return inside(async () => {
    const late = AbortSignal.timeout(timeout_sec * 1000 + TURN_MS);
    const stream = await guest.open('execute', { code, timeout_sec }, AbortSignal.any([hungUp, late]));
    stream.end();
    try {
      const { success, error } = await nextOf(guest, Outcome, stream);
      const [result, stdout, stderr] = [
        await part(guest, stream),
        await part(guest, stream),
        await part(guest, stream),
      ];
      return {
        success,
        ...(success ? { result: parsed(guest, result) } : {}),
        ...(error === undefined ? {} : { error }),
        ...(stdout === '' ? {} : { stdout }),
        ...(stderr === '' ? {} : { stderr }),
      };
    } catch (error) {
      throw hungUp.aborted ? hungUp.reason : error;
    } finally {
      stream.reset();
    }
  });
}

async function part(guest: Guest, stream: Stream): Promise<string> {
  const { bytes } = await nextOf(guest, OutcomePart, stream);
  return (await bytesFrom(guest, stream, bytes)).toString();
}

function parsed(guest: Guest, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    guest.distrust('it sent JSON that is none.');
    throw errors.guest_lost();
  }
}

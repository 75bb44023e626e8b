import type { Guest, Stream } from '../../chromium/guest/guest.ts';
import { Outcome, OutcomePart } from '../../chromium/guest/protocol.ts';
import { errors } from '../../errors.ts';
import { bytesFrom, inside, nextOf } from '../inside.ts';
import type { Hold } from '../holds.ts';
import { memoryShare, type MemoryShare } from '../../lib/memory-share.ts';
import { isJson } from '../../lib/json-aside.ts';
import type { ExecuteRequest, ExecuteResult } from './schema.ts';

/** The longest wait for earlier runs, on top of the code's own timeout. */
const TURN_MS = 10 * 60_000;

/** What came of code. The result is JSON. */
export type Executed = Omit<ExecuteResult, 'result'> & { result?: string };

/** Runs code next to the browser, one run after the other. A client that hangs up stops its run. */
export function execute(
  { engine }: Hold,
  { code, timeout_sec = 60 }: ExecuteRequest,
  hungUp: AbortSignal,
): Promise<Executed> {
  const { guest } = engine;
  return inside(async () => {
    const late = AbortSignal.timeout(timeout_sec * 1000 + TURN_MS);
    const stream = await guest.open('execute', { code, timeout_sec }, AbortSignal.any([hungUp, late]));
    const room = memoryShare(engine.memory, () => stream.reset(), hungUp);
    stream.end();
    try {
      const { success, error } = await nextOf(guest, Outcome, stream);
      const [result, stdout, stderr] = [
        await part(guest, stream, room),
        await part(guest, stream, room),
        await part(guest, stream, room),
      ];
      room.whole();
      return {
        success,
        ...(success ? { result: await checked(guest, result) } : {}),
        ...(error === undefined ? {} : { error }),
        ...(stdout === '' ? {} : { stdout }),
        ...(stderr === '' ? {} : { stderr }),
      };
    } catch (error) {
      throw hungUp.aborted ? hungUp.reason : error;
    } finally {
      room.close();
      stream.reset();
    }
  });
}

async function part(guest: Guest, stream: Stream, room: MemoryShare): Promise<string> {
  const { bytes } = await nextOf(guest, OutcomePart, stream);
  return (await bytesFrom(guest, stream, bytes, room)).toString();
}

/** The result is handed on as it came: a large one would take long to parse, and as long to write again. */
async function checked(guest: Guest, text: string): Promise<string> {
  if (await isJson(text, guest)) return text;
  guest.distrust('it sent JSON that is none.');
  throw errors.guest_lost();
}

import { isUtf8 } from 'node:buffer';
import type { Guest, Stream } from '../../chromium/guest/guest.ts';
import { Outcome, PrintedBytes, ResultBytes } from '../../chromium/guest/protocol.ts';
import { errors } from '../../errors.ts';
import { bytesFrom, inside, nextOf } from '../inside.ts';
import type { Hold } from '../holds.ts';
import { memoryShare, type MemoryShare } from '../../lib/memory-share.ts';
import { isJson } from '../../lib/json-aside.ts';
import { jsonStringParts } from '../../lib/json-parts.ts';
import { decode } from '../../lib/utf8.ts';
import type { ExecuteRequest } from './schema.ts';

/** The longest wait for earlier runs, on top of the code's own timeout. */
const TURN_MS = 10 * 60_000;

/** What came of code. The result is JSON; the outputs need not be text. */
export interface Executed {
  success: boolean;
  result?: Buffer;
  error?: string;
  stdout: Buffer;
  stderr: Buffer;
}

/**
 * Runs code next to the browser, one run after the other, and answers with what `answer` makes of its outcome. The outcome is counted in
 * `room` until then. A client that hangs up stops its run.
 */
export function execute<T>(
  { engine }: Hold,
  { code, timeout_sec = 60 }: ExecuteRequest,
  hungUp: AbortSignal,
  answer: (executed: Executed, room: MemoryShare) => T | Promise<T>,
): Promise<T> {
  const { guest } = engine;
  return inside(async () => {
    const late = AbortSignal.timeout(timeout_sec * 1000 + TURN_MS);
    const stream = await guest.open('execute', { code, timeout_sec }, AbortSignal.any([hungUp, late]));
    const room = memoryShare(engine.memory, () => stream.reset(), hungUp);
    stream.end();
    try {
      const { success, error } = await nextOf(guest, Outcome, stream);
      const [result, stdout, stderr] = [
        await part(guest, ResultBytes, stream, room),
        await part(guest, PrintedBytes, stream, room),
        await part(guest, PrintedBytes, stream, room),
      ];
      room.whole();
      const executed: Executed = {
        success,
        ...(success ? { result: await checked(guest, result) } : {}),
        ...(error === undefined ? {} : { error }),
        stdout,
        stderr,
      };
      return await answer(executed, room);
    } catch (error) {
      throw hungUp.aborted ? hungUp.reason : error;
    } finally {
      room.close();
      stream.reset();
    }
  });
}

/**
 * The outcome as an `ExecuteResult`: JSON in parts, each written in a turn of its own. 10 MiB of control characters in one piece took
 * 0.6 s.
 */
export async function executeResult(
  { success, result, error, ...printed }: Executed,
  room: MemoryShare,
): Promise<Buffer[]> {
  const parts: Buffer[] = [Buffer.from(`{"success":${success}`)];
  if (result) parts.push(Buffer.from(',"result":'), result);
  if (error !== undefined) parts.push(Buffer.from(`,"error":${JSON.stringify(error)}`));
  for (const [name, bytes] of Object.entries(printed)) {
    if (bytes.length === 0) continue;
    parts.push(Buffer.from(`,"${name}":`));
    for await (const part of jsonStringParts(bytes, 'utf8')) {
      parts.push(part);
      await room.add(part.length);
    }
  }
  return [...parts, Buffer.from('}')];
}

async function part(
  guest: Guest,
  schema: typeof ResultBytes | typeof PrintedBytes,
  stream: Stream,
  room: MemoryShare,
): Promise<Buffer> {
  const { bytes } = await nextOf(guest, schema, stream);
  return bytesFrom(guest, stream, bytes, room);
}

/** The result is handed on as it came: a large one would take long to parse, and as long to write again. */
async function checked(guest: Guest, result: Buffer): Promise<Buffer> {
  if (isUtf8(result) && (await isJson(await decode(result), guest))) return result;
  guest.distrust('it sent JSON that is none.');
  throw errors.guest_lost();
}

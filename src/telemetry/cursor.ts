import { createHash } from 'node:crypto';
import { errors } from '../errors.ts';

/**
 * The place of a page, as the integer that clients of this interface expect. The upper bits are the number of an event, the
 * lower ones a check: a cursor belongs to one session, and a number that was made up belongs to none. It is no secret, since
 * a session's events can be read from any place by the clients that can read them at all.
 */
const checkBits = 18;
const checks = 2 ** checkBits;
/** The largest event number: integers of JSON have 53 safe bits, and the check takes some of them. */
const mostSeq = 2 ** (53 - checkBits) - 1;

export const cursorOf = (sessionId: string, seq: number): number =>
  Math.min(seq, mostSeq) * checks + checkOf(sessionId, Math.min(seq, mostSeq));

/** The number of the event that a page ended with. */
export function seqOf(sessionId: string, cursor: number): number {
  const seq = Math.floor(cursor / checks);
  if (seq < 1 || cursor % checks !== checkOf(sessionId, seq))
    throw errors.invalid_input({
      detail:
        'query parameter offset is not a place in the events of this session. Send the X-Next-Offset of the page before, or leave it out.',
    });
  return seq;
}

const checkOf = (sessionId: string, seq: number) =>
  createHash('sha256').update(`${sessionId} ${seq}`).digest().readUInt32BE() % checks;

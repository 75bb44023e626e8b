import { record } from '../../lib/shape.ts';
import type { Message } from './pipe.ts';

/** Reads messages of Chromium where they lie, and no more of them than the multiplexer has to know. Nothing in them is believed. */

/** Of an answer to us: the session it names, where it is an answer that does. */
export interface Answer {
  sessionId: string | undefined;
}

/** What an event of the Target domain is about. */
export interface TargetEvent {
  method: string;
  targetId: string | undefined;
  sessionId: string | undefined;
  type: string;
}

/** Of what has to be parsed on its way. News of a target are a few hundred bytes, a list of a thousand some hundred kilobytes. */
const MOST_PARSED = 16 * 1024 * 1024;
const MOST_DIGITS = 12;

export const ANSWER = '{"id":';
const TARGET = '{"method":"Target.';
export const ATTACHED = '{"method":"Target.attachedToTarget",';
export const DETACHED = '{"method":"Target.detachedFromTarget",';
export const METHOD_AT = '{"method":"'.length;
export const LETTER_I = 0x69;
export const LETTER_T = 0x54;
export const SESSION = ',"sessionId":"';
/** `,"sessionId":"`, 32 hexadecimal digits, `"}` */
const TAIL = SESSION.length + 32 + 2;
const SESSION_ID = /^[0-9A-F]{32}$/i;
const COMMA = 0x2c;
const QUOTE = 0x22;
const CLOSE_BRACE = 0x7d;

/**
 * The session a message came on, read off its last bytes. A page cannot forge it: a message that ends in `"}` has a
 * string as its last top-level value, and a quote that follows `,` or `:` is not an escaped one, so what stands before it
 * is its name. `result`, `error` and `params` are objects, so a message without a session ends in `}}`.
 */
export function sessionOf(message: Message): string | undefined {
  const last = message.at(-1)!;
  const start = last.length - TAIL;
  if (start < 0 || last[start] !== COMMA || last[last.length - 1] !== CLOSE_BRACE || last[last.length - 2] !== QUOTE) {
    return undefined;
  }
  if (last.toString('latin1', start, start + SESSION.length) !== SESSION) return undefined;
  return last.toString('latin1', start + SESSION.length, last.length - 2);
}

/** Takes the session off the end of a message, in place. */
export function stripSession(message: Message, id: string): void {
  if (sessionOf(message) !== id) return;
  const last = message.at(-1)!;
  const end = last.length - TAIL;
  last[end] = CLOSE_BRACE;
  message[message.length - 1] = last.subarray(0, end + 1);
}

/** A message that is an object, or undefined if it is anything else. */
function parsed(message: Message): Record<string, unknown> | undefined {
  if (byteLength(message) > MOST_PARSED) return undefined;
  try {
    const value: unknown = JSON.parse(wholeText(message));
    return record(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

const asId = (value: unknown) => (typeof value === 'string' && value.length <= 128 ? value : undefined);
const asSession = (value: unknown) => (typeof value === 'string' && SESSION_ID.test(value) ? value : undefined);

/** What an event of the Target domain is about; undefined if it is none that Chromium sends. */
export function readTargetEvent(message: Message): TargetEvent | undefined {
  const { method, params } = parsed(message) ?? {};
  if (typeof method !== 'string' || !record(params)) return undefined;
  const info = record(params['targetInfo']) ? params['targetInfo'] : {};
  return {
    method,
    targetId: asId(info['targetId'] ?? params['targetId']),
    sessionId: asSession(params['sessionId']),
    type: String(info['type']),
  };
}

export function readAnswer(message: Message): Answer {
  const result = parsed(message)?.['result'];
  return { sessionId: record(result) ? asSession(result['sessionId']) : undefined };
}

/** The id in the answer to `Target.createTarget`. */
export function readCreated(message: Message): string | undefined {
  const result = parsed(message)?.['result'];
  return record(result) ? asId(result['targetId']) : undefined;
}

/** Takes targets out of the answer to `Target.getTargets`. False: it could not be read, and may show what it must not. */
export function withoutTargets(message: Message, isHidden: (targetId: string) => boolean): boolean {
  const answer = parsed(message);
  if (!answer) return false;
  const { result } = answer;
  if (!record(result) || !Array.isArray(result['targetInfos'])) return true;
  const all: unknown[] = result['targetInfos'];
  const shown = all.filter((info) => !record(info) || !isHidden(String(info['targetId'])));
  if (shown.length === all.length) return true;
  result['targetInfos'] = shown;
  message.splice(0, message.length, Buffer.from(JSON.stringify(answer)));
  return true;
}

export function isTargetEvent(head: Buffer): boolean {
  return head.toString('latin1', 0, TARGET.length) === TARGET;
}

export function answerId(head: Buffer): { id: number; end: number } {
  let end = ANSWER.length;
  let id = 0;
  for (let byte = head[end]; byte !== undefined && byte >= 0x30 && byte <= 0x39; byte = head[++end]) {
    if (end - ANSWER.length >= MOST_DIGITS) break;
    id = id * 10 + byte - 0x30;
  }
  return { id, end };
}

function wholeText(message: Message): string {
  return (message.length === 1 ? message[0] : Buffer.concat(message)).toString();
}

export function byteLength(message: Message): number {
  if (message.length === 1) return message[0].length;
  return message.reduce((sum, piece) => sum + piece.length, 0);
}

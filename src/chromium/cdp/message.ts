import { isLight, MOST_WEIGHT } from '../../lib/json-weight.ts';
import { record } from '../../lib/shape.ts';
import type { Message } from './pipe.ts';

/** Reads Chromium's messages in place, and only the parts that the multiplexer needs. Their content is not trusted. */

/** An answer to the multiplexer's own command, with the session that it names, if any. */
export interface Answer {
  sessionId: string | undefined;
}

/** The subject of an event of the Target domain. */
interface TargetEvent {
  method: string;
  targetId: string | undefined;
  sessionId: string | undefined;
  type: string;
  /** The target starts when this session's client says so. */
  paused: boolean;
}

/**
 * The size limit of messages that have to be parsed. Target events have a few hundred bytes, a list of a thousand targets some hundred
 * kilobytes; an address may have 2 MB.
 */
const MOST_PARSED = 8 * 1024 * 1024;
/** Target events have some twenty names and values. Many of them may be read in one turn. */
const MOST_TARGET_WEIGHT = 1000;
/** Events about the progress of a download have a few hundred bytes. Those of its beginning have its address, which may be data. */
const MOST_PROGRESS = 64 * 1024;
/** Streams are read in chunks of at most this size. */
const CHUNK = 64 * 1024;
const MOST_DIGITS = 12;

export const ANSWER = '{"id":';
const TARGET = '{"method":"Target.';
export const ATTACHED = '{"method":"Target.attachedToTarget",';
export const DETACHED = '{"method":"Target.detachedFromTarget",';
const METHOD = '{"method":"';
export const METHOD_AT = METHOD.length;
export const LETTER_B = 0x42;
export const LETTER_I = 0x69;
export const LETTER_P = 0x50;
export const LETTER_T = 0x54;
export const SESSION = ',"sessionId":"';
/** `,"sessionId":"`, 32 hexadecimal digits, `"}` */
const TAIL = SESSION.length + 32 + 2;
const SESSION_ID = /^[0-9A-F]{32}$/i;
const COMMA = 0x2c;
const QUOTE = 0x22;
const CLOSE_BRACE = 0x7d;

/**
 * The session of a message, read from its last bytes. A page cannot forge it: a message that ends in `"}` has a string as its last
 * top-level value, and a quote that follows `,` or `:` is not an escaped one, so what precedes it is its name. `result`, `error` and
 * `params` are objects, so a message without a session ends in `}}`.
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

/** Removes the session from the end of a message, in place. */
export function stripSession(message: Message, id: string): void {
  if (sessionOf(message) !== id) return;
  const last = message.at(-1)!;
  const end = last.length - TAIL;
  last[end] = CLOSE_BRACE;
  message[message.length - 1] = last.subarray(0, end + 1);
}

/** A message that is an object, or undefined if it is anything else. */
function parsed(message: Message, mostWeight = MOST_WEIGHT): Record<string, unknown> | undefined {
  if (byteLength(message) > MOST_PARSED) return undefined;
  const bytes = whole(message);
  if (!isLight(bytes, mostWeight)) return undefined;
  try {
    const value: unknown = JSON.parse(bytes.toString());
    return record(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

const asId = (value: unknown) => (typeof value === 'string' && value.length <= 128 ? value : undefined);
const asSession = (value: unknown) => (typeof value === 'string' && SESSION_ID.test(value) ? value : undefined);

/** The subject of an event of the Target domain; undefined if Chromium sends no such event. */
export function readTargetEvent(message: Message): TargetEvent | undefined {
  const { method, params } = parsed(message, MOST_TARGET_WEIGHT) ?? {};
  if (typeof method !== 'string' || !record(params)) return undefined;
  const info = record(params['targetInfo']) ? params['targetInfo'] : {};
  return {
    method,
    targetId: asId(info['targetId'] ?? params['targetId']),
    sessionId: asSession(params['sessionId']),
    type: String(info['type']),
    paused: params['waitingForDebugger'] === true,
  };
}

const DOWNLOAD = /^\{"method":"(?:Browser|Page)\.download(WillBegin|Progress)",/;

/** The download that an event is about: its name when it begins, and whether it is complete. */
export function readDownload(
  message: Message,
): { guid: string; name?: string | undefined; complete: boolean } | undefined {
  const [, kind] = DOWNLOAD.exec(message[0].toString('latin1', 0, 40)) ?? [];
  if (kind === undefined || (kind === 'Progress' && byteLength(message) > MOST_PROGRESS)) return undefined;
  const params = parsed(message)?.['params'];
  if (!record(params)) return undefined;
  const { guid, suggestedFilename, state } = params;
  if (typeof guid !== 'string' || guid.length > 128) return undefined;
  const name = kind === 'WillBegin' ? String(suggestedFilename).slice(0, 1000) : undefined;
  return { guid, name, complete: state === 'completed' };
}

/** Replaces the path that the event of a complete download names, if it names one. */
export function withFilePath(message: Message, path: string): void {
  const event = parsed(message);
  const params = event?.['params'];
  if (!event || !record(params) || params['filePath'] === undefined) return;
  params['filePath'] = path;
  message.splice(0, message.length, Buffer.from(JSON.stringify(event)));
}

/** The execution context that an event of the Runtime domain is about. Events that it ends have no name. */
export function readContext(message: Message): { id: number; name: unknown } | undefined {
  const params = parsed(message)?.['params'];
  if (!record(params)) return undefined;
  const context = record(params['context']) ? params['context'] : {};
  const id = context['id'] ?? params['executionContextId'];
  return typeof id === 'number' ? { id, name: context['name'] } : undefined;
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

/** The id in the answer to `Target.createBrowserContext`; undefined if none was created. */
export function readNewContext(message: Message): string | undefined {
  const result = parsed(message)?.['result'];
  return record(result) ? asId(result['browserContextId']) : undefined;
}

/** Removes targets from the answer to `Target.getTargets`. False: the answer could not be read, and may contain hidden targets. */
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

/** The method of an event, which Chromium writes first. Undefined for an answer. */
export function eventIn(head: Buffer): string | undefined {
  if (head.toString('latin1', 0, METHOD.length) !== METHOD) return undefined;
  const end = head.indexOf(QUOTE, METHOD.length);
  return end === -1 ? undefined : head.toString('latin1', METHOD.length, end);
}

/** A message to keep for later. Small ones are copied: each would keep the chunk that it arrived in. */
export function toKeep(message: Message): Message {
  return byteLength(message) < CHUNK ? [Buffer.concat(message)] : message;
}

/** All bytes of a message in one piece. */
export function whole(message: readonly Buffer[]): Buffer {
  return message.length === 1 ? message[0]! : Buffer.concat(message);
}

export function byteLength(message: readonly Buffer[]): number {
  if (message.length === 1) return message[0]!.length;
  return message.reduce((sum, piece) => sum + piece.length, 0);
}

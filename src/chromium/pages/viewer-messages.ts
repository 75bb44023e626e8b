import { isLight } from '../../lib/json-weight.ts';
import type { Check } from '../../lib/shape.ts';
import { urlOf } from '../../lib/urls.ts';
import { aboutFiles, shapes, type FilesMessage, type Shapes, type ViewerMessage } from './viewer-protocol.ts';

/** Reads the messages of viewers. They are not trusted: a message that is not exactly one of `shapes` is refused. */

export function isAboutFiles(message: ViewerMessage): message is FilesMessage {
  return aboutFiles.some((type) => type === message.type);
}

/** The size limit of a message to a viewer, or from it. */
export const MAX_MESSAGE = 1024 * 1024 + 1024;
/** The messages of a viewer that only watches are a few numbers, or the id of a tab. */
const MAX_WATCHING = 1024;
/** A thousand files with 2 fields, which are the most values of a message. */
const MOST_WEIGHT = 6000;
/** Several times the rate of a fast mouse and a fast typist together. */
const MAX_MESSAGES_A_SECOND = 1000;
/** Of a viewer that only watches. It sends a few short messages for each picture; 64 KiB of RFB messages take about 30 ms to read. */
const MAX_WATCHING_A_SECOND = 64 * 1024;

/** Why a viewer's connection has to be closed for a message; undefined if it need not be. To be called for each message, before it is read. */
export function viewerBounds(readOnly = false): (data: Buffer) => { code: number; reason: string } | undefined {
  const most = readOnly ? MAX_WATCHING_A_SECOND : MAX_MESSAGE;
  let second = 0;
  let count = 0;
  let bytes = 0;
  return ({ length }) => {
    if (length > most) return { code: 1009, reason: 'That message is too large.' };
    const now = Math.floor(Date.now() / 1000);
    if (second !== now) [second, count, bytes] = [now, 0, 0];
    count += 1;
    bytes += length;
    const tooMany = count > MAX_MESSAGES_A_SECOND || (readOnly && bytes > MAX_WATCHING_A_SECOND);
    return tooMany ? { code: 1008, reason: 'Too many messages in a second.' } : undefined;
  };
}

/** The viewer's message, or undefined if it is not valid, or not for a viewer that only watches. */
export function readViewerMessage(data: Buffer, readOnly = false): ViewerMessage | undefined {
  if (readOnly && data.length > MAX_WATCHING) return undefined;
  const message = isLight(data, MOST_WEIGHT) ? parsed(data) : undefined;
  return message && readOnly && !onlyWatches(message) ? undefined : message;
}

function parsed(data: Buffer): ViewerMessage | undefined {
  let value: unknown;
  try {
    value = JSON.parse(data.toString());
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null || !('type' in value)) return undefined;
  const { type } = value;
  if (typeof type !== 'string' || !Object.hasOwn(shapes, type)) return undefined;
  const fields: Record<string, Check<unknown>> = shapes[type as keyof Shapes];
  const given = new Map<string, unknown>(Object.entries(value));
  const fits = Object.entries(fields).every(([name, check]) => check(given.get(name)));
  return fits ? (value as ViewerMessage) : undefined;
}

/** Messages that change only the view of this viewer. */
const watching = new Set<ViewerMessage['type']>(['ack', 'size', 'quality', 'selectTab', 'follow']);

function onlyWatches({ type }: ViewerMessage): boolean {
  return watching.has(type);
}

/**
 * The URL of a text in the address bar; undefined if it is not an address. Only the schemes that a person needs:
 * `javascript:` and `file:` are left to clients that drive the session over CDP.
 */
export function addressOf(text: string): string | undefined {
  const trimmed = text.trim();
  if (/^(about:blank$|data:)/i.test(trimmed)) return trimmed;
  const local = /^(localhost|[\w-]+(\.[\w-]+)*\.localhost|\d+\.\d+\.\d+\.\d+|\[[\da-f:]+\])(:\d+)?([/?#]|$)/i.test(
    trimmed,
  );
  const hasScheme = /^[a-z][a-z\d+.-]*:/i.test(trimmed) && !/^[^/?#]+:\d+([/?#]|$)/.test(trimmed);
  const candidate = hasScheme ? trimmed : `${local ? 'http' : 'https'}://${trimmed}`;
  const url = urlOf(candidate);
  if (!url) return undefined;
  const { href, protocol, hostname } = url;
  if (protocol !== 'http:' && protocol !== 'https:') return undefined;
  return hasScheme || local || hostname.includes('.') || /:\d+([/?#]|$)/.test(trimmed) ? href : undefined;
}

/**
 * The destination of a text in the address bar: an address, or a search for the words, with `%s` in the search URL for the
 * words. A text with a scheme that is not for viewers is not searched for. Undefined if there is no destination.
 */
export function destinationOf(text: string, searchUrl: string): string | undefined {
  const address = addressOf(text);
  const words = text.trim();
  if (address !== undefined || searchUrl === '' || words === '' || /^[a-z][a-z\d+.-]*:\S/i.test(words)) return address;
  // Half a character, which JSON may contain, cannot be encoded: a buffer replaces it.
  return searchUrl.replaceAll('%s', () => encodeURIComponent(Buffer.from(words).toString()));
}

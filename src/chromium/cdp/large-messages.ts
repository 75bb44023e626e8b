import { withShortStrings } from '../../lib/json-strings.ts';
import { isLight } from '../../lib/json-weight.ts';
import { record } from '../../lib/shape.ts';
import { ANSWER, answerId, byteLength, eventIn, whole } from './message.ts';

/** Parsing this much at once takes some tens of milliseconds. */
export const MOST_PARSED = 8 * 1024 * 1024;
/** Of names and values, as JSON weighs: several thousand cookies. */
const MOST_VALUES = 200_000;
/** Of an event. No response has more headers, and no console call more arguments; the names of a large object take long to list. */
const MOST_EVENT_VALUES = 50_000;
/** An answer is in memory three times while it is read. No picture is larger. */
const MOST_DATA = 64 * 1024 * 1024;
/** A large message is a picture, or has long addresses or texts of a page. */
export const LARGE = 1024 * 1024;
/** Longer texts are cut in large events and lists. */
const LONGEST_TEXT = 16 * 1024;
/** What follows the data of a picture: other results, and the session. */
const MOST_AFTER = 1024;

/** Methods that return a picture or a document in base64. */
const DATA_METHODS: ReadonlySet<string> = new Set(['Page.captureScreenshot', 'Page.printToPDF']);
/** Methods that return lists of addresses: each has up to 2 MB, and there is one for each tab, entry or frame. */
const LIST_METHODS: ReadonlySet<string> = new Set([
  'Target.getTargets',
  'Page.getNavigationHistory',
  'Page.getFrameTree',
]);
const PICTURE = 'Page.screencastFrame';

const DATA = ',"result":{"data":"';
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

interface Read {
  message: Record<string, unknown>;
  /** The bytes of `result.data`, if it is a large text in base64: then it is empty in the message. */
  data?: readonly Buffer[];
}

/**
 * Reads a message of Chromium in a time that no page determines. `asked` is the method that it answers; an event answers none. The texts of
 * events and lists above `cutAbove` bytes are cut. Undefined if the message is not an object, or too large.
 */
export function readMessage(
  pieces: readonly Buffer[],
  asked: string | undefined,
  cutAbove: number = LARGE,
): Read | undefined {
  const length = byteLength(pieces);
  if (length > MOST_DATA) return undefined;
  if (length > LARGE && asked !== undefined && DATA_METHODS.has(asked)) return readPicture(pieces);
  const isCut = asked === undefined ? eventIn(pieces[0]!) !== PICTURE : LIST_METHODS.has(asked);
  const bytes = length > cutAbove && isCut ? shortened(pieces) : pieces;
  const message = bytes && parsed(bytes);
  return message && { message };
}

/** A picture is neither parsed nor copied: that would take a tenth of a second for tens of megabytes. */
function readPicture(pieces: readonly Buffer[]): Read | undefined {
  const head = pieces[0]!;
  if (head.toString('latin1', 0, ANSWER.length) !== ANSWER) return undefined;
  const from = answerId(head).end + DATA.length;
  if (head.toString('latin1', from - DATA.length, from) !== DATA) return undefined;
  const data: Buffer[] = [];
  const rest = [head.subarray(from), ...pieces.slice(1)];
  for (let piece = rest.shift(); piece; piece = rest.shift()) {
    const to = piece.indexOf(QUOTE);
    const part = to === -1 ? piece : piece.subarray(0, to);
    if (part.includes(BACKSLASH)) return undefined;
    data.push(part);
    if (to === -1) continue;
    const after = [piece.subarray(to), ...rest];
    const message = byteLength(after) > MOST_AFTER ? undefined : parsed([head.subarray(0, from), ...after]);
    return message && record(message['result']) ? { message, data } : undefined;
  }
  return undefined;
}

function shortened(pieces: readonly Buffer[]): readonly Buffer[] | undefined {
  const short = withShortStrings(whole(pieces), LONGEST_TEXT);
  return short && [short];
}

function parsed(pieces: readonly Buffer[]): Record<string, unknown> | undefined {
  if (byteLength(pieces) > MOST_PARSED) return undefined;
  const bytes = whole(pieces);
  if (!isLight(bytes, eventIn(bytes) === undefined ? MOST_VALUES : MOST_EVENT_VALUES)) return undefined;
  try {
    const message: unknown = JSON.parse(bytes.toString());
    if (!record(message)) return undefined;
    // An event, however it is written.
    return 'method' in message && !isLight(bytes, MOST_EVENT_VALUES) ? undefined : message;
  } catch {
    return undefined;
  }
}

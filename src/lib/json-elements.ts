import { turns } from './turns.ts';
import { decode } from './utf8.ts';

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
/** So many bytes are read between two looks at the clock. */
const STEP = 16 * 1024;

/** The weight of JSON (see `JsonWeight`): of the whole text, and of one element. */
interface Most {
  all: number;
  each: number;
}

/** The JSON has more names and values than its reader takes. */
export class TooHeavy extends Error {
  override readonly name = 'TooHeavy';
  readonly most: number;
  constructor(most: number) {
    super(`The JSON has more than ${most} names and values.`);
    this.most = most;
  }
}

/**
 * The elements of the JSON array at `path`, a list of member names. Elements are parsed one by one, in several turns of the event loop:
 * to parse a list of 200,000 names and values at once takes 0.2 s. Throws a SyntaxError if there is no such array. Other members are not
 * parsed.
 */
export async function* jsonElements(json: Buffer, path: readonly string[], most: Most): AsyncGenerator {
  let array = json;
  for (const name of path) array = await memberOf(array, name, most.all);
  for await (const element of parts(array, OPEN_BRACKET, most)) yield JSON.parse(await decode(element));
}

async function memberOf(json: Buffer, name: string, all: number): Promise<Buffer> {
  const key = JSON.stringify(name);
  let found: Buffer | undefined;
  for await (const member of parts(json, OPEN_BRACE, { all, each: all })) {
    const colon = member.indexOf(COLON);
    // A longer text before the colon is another key.
    if (colon < key.length + 64 && member.toString('utf8', 0, Math.max(0, colon)).trim() === key)
      found = member.subarray(colon + 1); // of equal keys the last counts, as for JSON.parse
  }
  if (!found) throw new SyntaxError(`The JSON has no ${key}.`);
  return found;
}

/** The texts between the commas of an array or an object. They need not be JSON. */
async function* parts(json: Buffer, open: number, { all, each }: Most): AsyncGenerator<Buffer> {
  const pause = turns();
  let depth = 0;
  let start = -1;
  let inString = false;
  let [weight, before] = [0, 0];
  let look = STEP;
  let isEmpty = true;
  for (let at = 0; at < json.length; at++) {
    if (at >= look) {
      look = at + STEP;
      await pause();
    }
    const byte = json[at]!;
    if (inString) {
      if (byte === BACKSLASH) at++;
      else if (byte === QUOTE) inString = false;
      continue;
    }
    if (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) continue;
    if (depth === 0 && (start !== -1 || byte !== open)) throw new SyntaxError('The JSON is not of the expected kind.');
    const isOpening = byte === OPEN_BRACE || byte === OPEN_BRACKET;
    const isEnd = (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) && --depth === 0;
    const isBetween = byte === COMMA && depth === 1;
    if ((isOpening || byte === COMMA || byte === COLON) && ++weight > all) throw new TooHeavy(all);
    if (isBetween || (isEnd && !isEmpty)) yield json.subarray(start, at);
    else if (depth > 0 && weight - before > each) throw new TooHeavy(each);
    if (isBetween || (isOpening && ++depth === 1)) [start, before] = [at + 1, weight];
    else if (depth > 0) isEmpty = false;
    if (byte === QUOTE) inString = true;
  }
  if (depth !== 0 || start === -1) throw new SyntaxError('The JSON has no end.');
}

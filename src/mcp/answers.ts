import { withShortStrings } from '../lib/json-strings.ts';
import { isLight } from '../lib/json-weight.ts';
import type { Answer, Content, Host, Question } from './host.ts';
import { ToolFailure } from './host.ts';

/** About four thousand tokens: a model reads it at once, and a conversation has room for many. */
export const MOST_CHARACTERS = 16_000;

/** Addresses with a token in them, and keys: they are for programs. `get_connection_context` gives the addresses when asked. */
const UNSAID = new Set(['cdp_ws_url', 'webdriver_ws_url', 'base_url', 'webhook_url', 'key', 'jwt']);

/** What a tool must not be given, because the model, and what keeps its words, would know it. */
const SECRET = /password|secret|token|^(?:values|field_values|passphrase|private_key)$/i;

/** Enough for a screenshot, not for a video: the answer is held in memory. */
const MOST_BYTES = 8_000_000;

/** Counts the bytes of answers of the API, and throws when they are too many. */
export function answerBound(): (bytes: number) => void {
  let length = 0;
  return (bytes) => {
    length += bytes;
    if (length > MOST_BYTES)
      throw new ToolFailure(
        `The answer is larger than ${MOST_BYTES / 1e6} MB. Use exec_command to take a part of it (head, tail, grep).`,
      );
  };
}

/** The bytes of an answer of the API. `count` is awaited before each piece is kept. */
export async function bounded(
  stream: AsyncIterable<Uint8Array>,
  count: (bytes: number) => Promise<void> | void = answerBound(),
): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream) {
    await count(chunk.length);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** A name as a part of a path. '.' and '..' are refused. */
export function segment(name: string): string {
  if (name === '' || name === '.' || name === '..') throw new ToolFailure(`'${name}' is not an id or a name.`);
  return encodeURIComponent(name);
}

/** Asks, and throws a refusal in the service's words with what to do next. */
export async function asked(host: Host, question: Question): Promise<Answer> {
  const answer = await host.ask(question);
  if (answer.status < 400) return answer;
  const { code = '', message = answer.bytes.toString('utf8', 0, 500) } = parsed(answer.bytes) as {
    code?: string;
    message?: string;
  };
  throw new ToolFailure(`${message}${code ? ` (${code})` : ''}${nextStep(answer.status)}`);
}

function nextStep(status: number): string {
  if (status === 401 || status === 403) return ' Ask the user for a key that may do this; do not try again.';
  if (status === 404) return " Call the tool's list action to see the existing ones.";
  if (status === 409) return ' Read its state with the get action before you try again.';
  if (status === 429 || status === 503) return ' Wait some seconds, then try again once.';
  if (status >= 500) return ' Try again once; if it fails again, tell the user.';
  return '';
}

export async function askedJson<T>(host: Host, question: Question): Promise<T> {
  return parsed((await asked(host, question)).bytes) as T;
}

/** Texts are cut to what fits into an answer: megabytes of escaped characters would take long to parse, and as long to write again. */
export function parsed(bytes: Buffer): unknown {
  if (bytes.length === 0) return {};
  const short = withShortStrings(bytes, MOST_CHARACTERS);
  if (!short || !isLight(short)) throw tooMuch();
  try {
    return JSON.parse(short.toString('utf8'));
  } catch {
    return {};
  }
}

/** The same with whole texts, for answers that have no escaped characters. */
export function parsedWhole(bytes: Buffer): unknown {
  if (!isLight(bytes)) throw tooMuch();
  return JSON.parse(bytes.toString('utf8'));
}

const tooMuch = () => new ToolFailure('The answer has more names, values or texts than fit here. Ask for less.');

export const text = (words: string): Content => ({ type: 'text', text: words });

/** JSON without fields that models must not see, cut if it is too long. */
export function jsonText(
  thing: unknown,
  readOn = 'Ask for less: a filter, a smaller limit, or one thing by its id.',
): Content {
  const whole = JSON.stringify(thing, (key, value: unknown) => (UNSAID.has(key) ? undefined : value)) ?? 'null';
  return text(cut(whole, readOn));
}

/** `left`: the characters that the text has lost already. */
export function cut(whole: string, readOn: string, left = 0): string {
  if (whole.length <= MOST_CHARACTERS) return whole;
  return `${whole.slice(0, MOST_CHARACTERS)}\n… cut: ${whole.length - MOST_CHARACTERS + left} more characters. ${readOn}`;
}

/** Secrets do not pass through the model: a person gives them to the service by another way. Iterative, because JSON can be deep. */
export function refuseSecrets(given: unknown): void {
  const left = [given];
  while (left.length > 0) {
    const node = left.pop();
    if (typeof node !== 'object' || node === null) continue;
    for (const [name, value] of Object.entries(node)) {
      if (!Array.isArray(node) && SECRET.test(name))
        throw new ToolFailure(
          `'${name}' is a secret, which must not pass through a model. Ask the user to set it in the web console or with the corral command, and continue with its name or id.`,
        );
      left.push(value);
    }
  }
}

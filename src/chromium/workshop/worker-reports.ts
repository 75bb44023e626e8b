import type { Readable } from 'node:stream';
import { Type, type Static } from 'typebox';
import { Value } from 'typebox/value';
import { isJson } from '../../lib/json-aside.ts';
import { JsonWeight } from '../../lib/json-weight.ts';
import { Pieces } from '../../lib/pieces.ts';
import { loopPace, nextTurn } from '../../lib/turns.ts';

/** How an action ended: with its output as JSON, or with a sentence. */
export type Outcome = { output: string | null } | { failure: string };

const MOST_OUTPUT = 4.5 * 2 ** 20;
/** The most of a line with an output, which is JSON inside JSON: escaping at most doubles it. */
const LONGEST_REPORT = 10 * 2 ** 20;
/** What a report has beside the output: its names and the id of the action. */
const ENVELOPE = 1024;
const LARGE = 256 * 1024;
/** The pieces of a report: each is work, and an app may write byte by byte. A worker writes a report at once, which arrives in some hundred. */
const MOST_PIECES = 20_000;
const [BACKSLASH, U] = [0x5c, 0x75];
const MOST_VALUES = 1000;
/** The maximum length of the error text of an action. It is searched for every secret, so a worker cuts it. */
const LONGEST_MESSAGE = 4000;

const Report = Type.Union([
  Type.Object({ ready: Type.Literal(true) }),
  Type.Object({ broken: Type.String({ maxLength: LONGEST_MESSAGE }) }),
  Type.Object({ done: Type.String(), output: Type.Union([Type.String(), Type.Null()]) }),
  Type.Object({ failed: Type.String(), message: Type.String({ maxLength: LONGEST_MESSAGE }) }),
]);

/**
 * Hands over each report until one is refused. Reports of many workers may arrive in one turn of the event loop: those for which it has no
 * time are read in later turns.
 */
export function readReports(
  from: Readable,
  { take, refuse }: { take: (said: Static<typeof Report>) => boolean; refuse: (why: string) => void },
): void {
  let report = new ArrivingReport();

  /** Returns why the piece is refused, if it is. */
  async function read(piece: Buffer): Promise<string | undefined> {
    for (;;) {
      if (loopPace.isOver()) await nextTurn();
      const at = piece.indexOf(10);
      const fault = report.add(at === -1 ? piece : piece.subarray(0, at));
      if (fault || at === -1) return fault;
      if (report.isLarge) await nextTurn(); // to decode and parse it takes 50 ms
      const said = parse(report.text());
      if (!Value.Check(Report, said) || !take(said)) return 'It reported an invalid result.';
      report = new ArrivingReport();
      piece = piece.subarray(at + 1);
    }
  }

  from.on('data', (piece: Buffer) => {
    from.pause();
    void read(piece).then((fault) => {
      if (fault === undefined) from.resume();
      else refuse(fault);
    });
  });
}

/**
 * The bytes of a report, weighed as they arrive: to decode and weigh 10 MiB in one piece takes 130 ms. What the app returned is a string in
 * it, so a report has few values.
 */
class ArrivingReport {
  #pieces = new Pieces();
  /** What the app returned may be nothing but escapes: its bytes are bounded. */
  #weight = new JsonWeight(Infinity);
  /** The bytes of the output at least: an escaped character is one byte or more. */
  #unescaped = 0;
  #escaped = false;
  #added = 0;

  /** Returns why the report is refused, if it is. */
  add(piece: Buffer): string | undefined {
    this.#pieces.add(piece);
    this.#added += 1;
    this.#count(piece);
    if (this.#unescaped > MOST_OUTPUT + ENVELOPE || this.#pieces.length > LONGEST_REPORT)
      return 'The worker sent a report of more than 4.5 MiB of output.';
    const fits = this.#added <= MOST_PIECES && this.#weight.add(piece, MOST_VALUES);
    return fits ? undefined : 'It reported an invalid result.';
  }

  #count(piece: Buffer): void {
    for (let at = 0; at < piece.length; at++) {
      const byte = piece[at]!;
      if (this.#escaped) {
        this.#escaped = false;
        if (byte === U) this.#unescaped -= 4; // of the digits that follow
      } else if (byte === BACKSLASH) {
        this.#escaped = true;
        continue;
      }
      this.#unescaped++;
    }
  }

  get isLarge(): boolean {
    return this.#pieces.length > LARGE;
  }

  text(): string {
    return this.#pieces.take().toString();
  }
}

/** The result of an app is stored and shown unchanged, so it must be JSON of a limited size. */
export async function outcomeOf(output: string | null, owner: unknown = {}): Promise<Outcome> {
  if (output === null) return { output };
  if (Buffer.byteLength(output) > MOST_OUTPUT) return { failure: 'The output has more than 4.5 MiB as JSON.' };
  await nextTurn(owner); // after the turn that decoded the report
  const json = await isJson(output, owner).catch(() => undefined);
  if (json === undefined) return { failure: 'The output has many values, and the service was too busy to check it.' };
  return json ? { output } : { failure: 'The output is not JSON.' };
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

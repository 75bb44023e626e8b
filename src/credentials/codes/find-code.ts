import { candidatesIn, type Candidate } from './candidates.ts';
import { textOfHtml } from './html-text.ts';
import { withoutLinks } from './links.ts';
import { folded, marksIn, type Mark } from './words.ts';

/** A mail or another message. */
export interface Message {
  subject?: string | undefined;
  text?: string | undefined;
  html?: string | undefined;
}

/** A candidate with a lower value is not taken. */
const leastValue = 45;
/** So near to a word for codes, in characters, letters among the digits are no other name or number. */
const nearestWord = 40;
/** A word for another number that is so near before a candidate names it. */
const namesIt = 14;

/**
 * The one-time code of a message: the best candidate by its form and by its distance to words for codes. Undefined if nothing in it
 * looks like a code. The text comes before the HTML, which says the same and has more around it.
 */
export function codeIn({ subject = '', text = '', html = '' }: Message): string | undefined {
  const found = text.trim() === '' ? undefined : best(subject, text);
  return found ?? best(subject, textOfHtml(html));
}

function best(subject: string, body: string): string | undefined {
  const head = withoutLinks(folded(subject.slice(0, mostOfSubject)));
  const all = `${head}\n\n${withoutLinks(folded(body))}`;
  const marks = marksIn(all);
  const isNamed = marks.some(({ isCode }) => isCode);
  // Without a word for codes, the message has to be a code and little else.
  const candidates = candidatesIn(all).filter(({ alone, bound }) => isNamed || alone || bound);
  const values = new Map<string, number>();
  const around = neighbours(marks);
  for (const candidate of candidates) {
    const value = valueOf(candidate, around(candidate), candidate.from < head.length);
    if (value === undefined) continue;
    const before = values.get(candidate.code);
    values.set(candidate.code, before === undefined ? value : Math.max(before, value) + repeated);
  }
  const ranked = [...values].sort(([, one], [, two]) => two - one);
  const [first, second] = ranked;
  if (!first || first[1] < leastValue) return undefined;
  return isNamed || second === undefined || second[1] < leastValue ? first[0] : undefined;
}

const mostOfSubject = 1000;
/** The value of a code that the subject and the text have. */
const repeated = 8;

interface Around {
  /** The words before and after a candidate, and the characters between. */
  before?: { mark: Mark; distance: number } | undefined;
  codeBefore: number;
  codeAfter: number;
}

/** The words around each candidate. Candidates are asked for in their order, so that the words are read once. */
function neighbours(marks: readonly Mark[]): (candidate: Candidate) => Around {
  let next = 0;
  let lastCode: Mark | undefined;
  let nextCode = 0;
  return ({ from, to }) => {
    while (next < marks.length && marks[next]!.to <= from) {
      if (marks[next]!.isCode) lastCode = marks[next];
      next++;
    }
    nextCode = Math.max(nextCode, next);
    while (nextCode < marks.length && !(marks[nextCode]!.isCode && marks[nextCode]!.from >= to)) nextCode++;
    const mark = marks[next - 1];
    return {
      before: mark && { mark, distance: from - mark.to },
      codeBefore: lastCode ? from - lastCode.to : Infinity,
      codeAfter: nextCode < marks.length ? marks[nextCode]!.from - to : Infinity,
    };
  };
}

/** How much a candidate looks like the code. Undefined if it is something else. */
function valueOf(candidate: Candidate, { before, codeBefore, codeAfter }: Around, inSubject: boolean) {
  const { code, kind, alone, afterColon, announced, bound, doubtful, year } = candidate;
  if (bound) return 200;
  const distance = Math.min(codeBefore, codeAfter + 6);
  const named = before && !before.mark.isCode && before.distance <= namesIt && !alone;
  if (year && !(afterColon && codeBefore <= 3)) return undefined;
  if (kind !== 'digits') {
    const stands = alone || afterColon || codeBefore <= 24 || codeAfter <= 16;
    if (distance > (alone ? 3 : 1) * nearestWord || !stands || named) return undefined;
    if (kind === 'letters' && !((announced || afterColon) && codeBefore <= 2 * nearestWord)) return undefined;
  }
  const length = code.replaceAll('-', '').length;
  return (
    (kind === 'digits' ? 30 : kind === 'mixed' ? 22 : 8) +
    (length === 6 ? 12 : length === 5 || length === 7 || length === 8 || length === 4 ? 6 : 0) +
    (alone ? 20 : 0) +
    (afterColon ? 12 : 0) +
    (inSubject ? 6 : 0) +
    (distance === Infinity ? 0 : Math.max(0, 40 - distance / 5)) +
    (named ? -45 : 0) +
    (doubtful ? -40 : 0)
  );
}

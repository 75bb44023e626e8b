/** Something in a text that may be a code, with its form and what is directly around it. */
export interface Candidate {
  code: string;
  from: number;
  to: number;
  kind: 'digits' | 'mixed' | 'letters';
  /** Its line has nothing else. */
  alone: boolean;
  /** A colon, or a word such as "is", comes directly before it. */
  afterColon: boolean;
  /** It is alone, and the line before it ends with a colon. */
  announced: boolean;
  /** It is bound to the host of its line, as in `@shop.example #123456`. */
  bound: boolean;
  /** Some sign beside it says that it is a number of another kind. */
  doubtful: boolean;
  year: boolean;
}

const mostCandidates = 300;
const shortest = 4;
const longest = 10;

/** Digits, with a blank or a dash between groups, and words with letters and digits. Neither search goes back in the text. */
const words = /[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*/g;
const runs = /\d+(?:[ -]\d+)*/g;

/** The candidates of a folded text, in their order. */
export function candidatesIn(text: string): Candidate[] {
  const found: Candidate[] = [];
  let start = 0;
  let announces = false;
  for (const line of text.split('\n')) {
    if (found.length >= mostCandidates) break;
    for (const one of inLine(line))
      found.push({ ...one, from: start + one.from, to: start + one.to, announced: one.alone && announces });
    start += line.length + 1;
    const end = line.slice(-40).trimEnd();
    if (end !== '' || line.length > 40) announces = /[:：]$/.test(end);
  }
  return found.slice(0, mostCandidates);
}

type InLine = Omit<Candidate, 'announced'>;

function inLine(line: string): InLine[] {
  const found: InLine[] = [];
  for (const { index, 0: run } of line.matchAll(runs)) {
    for (const { code, from, to } of groupsOf(run)) {
      const one = digitsAt(line, code, index + from, index + to);
      if (one) found.push(one);
      if (found.length >= mostCandidates) return found;
    }
  }
  for (const { index, 0: word } of line.matchAll(words)) {
    const one = wordAt(line, word, index);
    if (one) found.push(one);
    if (found.length >= mostCandidates) break;
  }
  return found.sort((one, two) => one.from - two.from);
}

/** A run of digits as one code, if its groups are of one length, and otherwise each group by itself. */
function groupsOf(run: string): { code: string; from: number; to: number }[] {
  const groups = run.split(/[ -]/);
  const digits = groups.join('');
  const even = groups.every(({ length }) => length === groups[0]!.length);
  if (even && digits.length >= shortest && digits.length <= longest && !(groups.length > 1 && groups.every(isYear)))
    return [{ code: digits, from: 0, to: run.length }];
  // Dates and telephone numbers have groups of several lengths.
  if (groups.length > 1 && (run.includes('-') || (groups.length > 2 && digits.length > longest))) return [];
  if (groups[0]!.startsWith('0') && groups.length > 1) return [];
  const parts = [];
  let from = 0;
  for (const code of groups) {
    if (code.length >= shortest && code.length <= longest) parts.push({ code, from, to: from + code.length });
    from += code.length + 1;
  }
  return parts;
}

const isYear = (digits: string) => /^(?:19|20)\d\d$/.test(digits);

const money = /[$€£¥₹₽₩₺₴฿₫]/;
const moneyBefore = /(?:\b(?:eur|usd|gbp|chf|inr|pln|rs\.?|kr)|[$€£¥₹₽₩₺₴฿₫]) ?$/i;
const moneyAfter =
  /^ ?(?:[$€£¥₹₽₩₺₴฿₫%‰元円원]|(?:eur|euros?|usd|gbp|chf|inr|pln|zl|zł|kr|sek|nok|dkk|kc|czk|ft|huf|lei|ron|tl|руб|грн|dollars?|points?|punkte|miles|days?|tage|hours?|minutes?|minuten|seconds?|years?|km|kg|gb|mb)(?![\p{L}\d]))/iu;
/** Of a link, a number with a fraction, a time, a date, a masked number, a name with digits. */
const joins = /[=&?/\\@_~%+]/;
const joinsOn = /[=&/\\@_%]/;

function digitsAt(line: string, code: string, from: number, to: number): InLine | undefined {
  const before = line.slice(Math.max(0, from - 12), from);
  const after = line.slice(to, to + 14);
  const [last = '', next = ''] = [before.at(-1), after[0]];
  const prefix = /(?:^|[^A-Za-z0-9-])([A-Za-z]{1,3})-$/.exec(before);
  if (/[A-Za-z]/.test(next) || /[A-Za-z]/.test(last) || joins.test(last) || joinsOn.test(next)) return undefined;
  if (last === '-' && !prefix) return undefined;
  if (next === '-' && /[A-Za-z0-9]/.test(after[1] ?? '')) return undefined;
  if (/\d[.,:]$/.test(before) || /^[.,:]\d/.test(after)) return undefined;
  if (moneyBefore.test(before) || moneyAfter.test(after) || money.test(last)) return undefined;
  // "(555) 123456" and "*1234": a part of a telephone number, and the end of a card's.
  if (/\+[\d ()-]*$/.test(before) || /\d\)[ -]?$/.test(before) || (last === '(' && /^\) ?[\d-]/.test(after)))
    return undefined;
  // Stars on both sides make a text bold.
  const stars = /\**$/.exec(before)![0].length; // not linear: of twelve characters
  const closing = /^\**/.exec(after)![0].length;
  const isMasked = /(?:[•·…]|\.\.|x{2,}) ?$/i.test(before); // not linear: of twelve characters
  if (isMasked || (stars > 0 && stars !== closing)) return undefined;
  const start = prefix ? from - prefix[1]!.length - 1 : from;
  return {
    ...placed(line, start, to),
    code,
    from,
    to,
    kind: 'digits',
    bound: line.length < 300 && /^\s*@\S+ #$/.test(line.slice(0, from)),
    doubtful: last === '#' || /\b(?:no|nr)[.:]? ?$/i.test(before) || (code.length > 4 && code.endsWith('000')),
    year: isYear(code),
  };
}

/** Words in capitals that are no codes. */
const headings = new Set(
  'ACCOUNT ACCEPT ACTION CLICK CODES CONFIRM CONTACT CONTINUE EMAIL HELLO IMPORTANT LOGIN NOTICE PLEASE RESET SECURE SECURITY SIGN-IN SUBMIT SUPPORT THANKS VERIFY WARNING WELCOME'.split(
    ' ',
  ),
);

function wordAt(line: string, word: string, from: number): InLine | undefined {
  const to = from + word.length;
  const letters = word.replaceAll('-', '');
  if (letters.length < shortest || letters.length > longest || word.split('-').length > 3) return undefined;
  const hasDigit = /\d/.test(letters);
  if (!/[A-Za-z]/.test(letters) || /^[A-Za-z]{1,3}-\d+$/.test(word)) return undefined;
  // "15min", "2nd" and "iPhone15" on the one side, and plain words on the other.
  if (/^\d+[A-Za-z]{1,4}$/.test(word) && !/^\d+[A-Z]+$/.test(word)) return undefined;
  if (/^[A-Z]?[a-z]+[A-Z]?[a-z]*\d{1,2}$/.test(word)) return undefined; // not linear: of twelve characters
  if (!hasDigit && (!/^[A-Z-]{5,9}$/.test(word) || headings.has(word))) return undefined;
  const [last = '', next = ''] = [line[from - 1], line[to]];
  if (
    joins.test(last) ||
    joinsOn.test(next) ||
    /[#.\p{L}]/u.test(last) ||
    /^\.[A-Za-z0-9]/.test(line.slice(to, to + 2))
  )
    return undefined;
  const kind = hasDigit ? 'mixed' : 'letters';
  return { ...placed(line, from, to), code: word, from, to, kind, bound: false, doubtful: false, year: false };
}

/** Whether the line has nothing else, but for signs around it, and what is directly before. */
function placed(line: string, from: number, to: number): Pick<Candidate, 'alone' | 'afterColon'> {
  const [before, after] = [line.slice(0, from), line.slice(to)];
  const isBare = line.length - (to - from) <= 40 && !/[\p{L}\p{N}]/u.test(before) && !/[\p{L}\p{N}]/u.test(after);
  const near = line.slice(Math.max(0, from - 14), from);
  return {
    alone: isBare,
    afterColon: /(?:[:：=]|[ :](?:is|ist|est|es|e|ar|er|on|to|jest))[\s*"'«“„<[(-]*$/i.test(near),
  };
}

import { parseRegExpLiteral, visitRegExpAST } from '@eslint-community/regexpp';
import { Chars, toUnicodeSet } from 'regexp-ast-analysis';
import scslre from 'scslre';

/** A repetition with a larger maximum than this counts as unbounded: every place of a text would be tried that often. */
const LONG = 32;

/**
 * Why a regular expression may take more than linear time, or undefined. There are two ways to it. Backtracking: two repetitions divide the
 * same text between them in every possible way. And restarts: from each place of a text, a search reads on to where it fails, and begins
 * again one character later. `scslre` detects texts of one repeated character. The code below detects those of several, and may report too
 * much: it considers the characters that a part may read, and not their order.
 */
export function whyNotLinear(source, flags) {
  const { pattern } = parseRegExpLiteral(new RegExp(source, flags));
  const [report] = scslre.analyse({ source: withoutLongEnds(pattern), flags }).reports;
  const character = report && `a run of ${JSON.stringify(report.character.pick)}`;
  if (report) return report.type === 'Move' ? readsAgain(character) : divides('two repetitions', character);
  const how = {
    ignoreCase: flags.includes('i'),
    multiline: flags.includes('m'),
    dotAll: flags.includes('s'),
    unicode: flags.includes('u'),
    unicodeSets: flags.includes('v'),
  };
  for (const quantifier of longInside(pattern)) {
    if (!isReadInVain(quantifier)) continue;
    const [other] = longBefore(quantifier, how);
    if (other) return divides(`${other.raw} and ${quantifier.raw}`, 'the same text');
    if (!flags.includes('y') && !isReadOnce(quantifier, how)) return readsAgain(quantifier.raw);
  }
  return undefined;
}

const readsAgain = (what) => `a search reads ${what} again from each place where it may begin`;
const divides = (parts, what) => `${parts} divide ${what} between them in many ways`;

const isLong = ({ max }) => max > LONG;

/** The pattern with `{0,64}` as `{0,}`: the square of a long bound takes long too. */
function withoutLongEnds(pattern) {
  const ends = longInside(pattern).filter(({ min, max }) => max !== Infinity && min !== max);
  return ends
    .sort((a, b) => b.element.end - a.element.end)
    .reduce((raw, { element, end, min, greedy }) => {
      const [from, to] = [element.end - pattern.start, end - pattern.start];
      return `${raw.slice(0, from)}{${min},}${greedy ? '' : '?'}${raw.slice(to)}`;
    }, pattern.raw);
}

function longInside(element) {
  const found = [];
  visitRegExpAST(element, { onQuantifierEnter: (node) => isLong(node) && found.push(node) });
  return found;
}

/** Whether a match can fail after much of a repetition was read. What an assertion has read is read again in any case. */
function isReadInVain(quantifier) {
  if (quantifier.min > LONG) return true;
  for (let up = quantifier.parent; up.type !== 'Pattern'; up = up.parent) if (up.type === 'Assertion') return true;
  return [...elementsAfter(quantifier)].some(canFail);
}

function canFail(element) {
  if (element.type === 'Quantifier') return element.min > 0 && canFail(element.element);
  if (element.type === 'Group' || element.type === 'CapturingGroup')
    return element.alternatives.every((alternative) => alternative.elements.some(canFail));
  return true;
}

/** The long repetitions before another one for which a text may have many borders: no part of the way between them is missing in either. */
function* longBefore(second, flags) {
  const later = consumed(second, flags);
  const between = [second.element];
  for (const { element } of elementsBefore(second)) {
    if (element.type !== 'Assertion')
      for (const first of longInside(element)) {
        const earlier = consumed(first, flags);
        const way = [...between, ...elementsAfter(first, element), first.element];
        if (first.min !== first.max && !way.some((one) => isGuard(one, earlier, flags) || isGuard(one, later, flags)))
          yield first;
      }
    between.push(element);
  }
}

/**
 * Whether one attempt alone reads a run of the repetition's characters: every way to it goes past a character that is not one of them, so
 * an attempt that begins inside of the run does not get there.
 */
function isReadOnce(quantifier, flags) {
  for (let up = quantifier.parent; up.type !== 'Pattern'; up = up.parent)
    if (up.type === 'Assertion' && up.kind === 'lookbehind') return false;
  const run = consumed(quantifier, flags);
  return [...elementsBefore(quantifier)].some(({ element, next }) => isGuard(element, run, flags, next));
}

/** The elements before a node, the nearest first; each with the element that follows it. */
function* elementsBefore(inner) {
  for (let [node, up] = [inner, inner.parent]; up.type !== 'Pattern'; [node, up] = [up, up.parent]) {
    if (up.type !== 'Alternative') continue;
    for (let at = up.elements.indexOf(node) - 1; at >= 0; at--)
      yield { element: up.elements[at], next: up.elements[at + 1] };
  }
}

/** The elements after a node, to the end of `outer` or of the pattern. */
function* elementsAfter(inner, outer) {
  for (let node = inner; node !== outer && node.parent.type !== 'Pattern'; node = node.parent)
    if (node.parent.type === 'Alternative') yield* node.parent.elements.slice(node.parent.elements.indexOf(node) + 1);
}

/** Whether every way through an element has a character that is not one of the run. */
function isGuard(element, run, flags, next) {
  const oneGuards = ({ elements }) => elements.some((each, at) => isGuard(each, run, flags, elements[at + 1]));
  switch (element.type) {
    case 'Character':
    case 'CharacterSet':
    case 'CharacterClass':
      return consumed(element, flags).isDisjointWith(run);
    case 'Quantifier':
      return element.min > 0 && isGuard(element.element, run, flags);
    case 'Group':
    case 'CapturingGroup':
      return element.alternatives.every(oneGuards);
    case 'Assertion':
      if (element.kind === 'start') return !flags.multiline || Chars.lineTerminator(flags).isDisjointWith(run);
      if (element.kind === 'word') return !element.negate && beginsWord(next, run, flags);
      if (element.kind !== 'lookbehind') return false;
      return element.negate
        ? element.alternatives.some(({ elements: [one, more] }) => !more && isOne(one) && holds(one, run, flags))
        : element.alternatives.every(oneGuards);
    default:
      return false;
  }
}

/** A letter after `\b` has no letter before it, so a run of letters has only one such place. */
function beginsWord(next, run, flags) {
  const letters = Chars.word(flags);
  return next !== undefined && isOne(next) && run.isSubsetOf(letters) && consumed(next, flags).isSubsetOf(letters);
}

const isOne = (element) => ['Character', 'CharacterSet', 'CharacterClass'].includes(element?.type);

const holds = (element, run, flags) => run.isSubsetOf(consumed(element, flags));

/** All characters that an element may read. */
function consumed(element, flags) {
  if (isOne(element)) return toUnicodeSet(element, flags).chars;
  let set = Chars.empty(flags);
  const add = (node) => {
    if (!node.parent.type.startsWith('CharacterClass')) set = set.union(toUnicodeSet(node, flags).chars);
  };
  visitRegExpAST(element, {
    onCharacterEnter: add,
    onCharacterSetEnter: add,
    onCharacterClassEnter: add,
    onBackreferenceEnter() {
      set = Chars.all(flags);
    },
  });
  return set;
}

import { expect, test } from 'vitest';
import { slowRegexes } from '../scripts/regexes.mjs';

/** Each takes more than linear time for some text, and the check says why. */
test.each([
  ['a run at the end', String.raw`/\/+$/`, /a search reads a run of "\/" again/],
  ['blanks around a comma', String.raw`/\s*,\s*/`, /a search reads a run of " " again/],
  ['two repetitions of one character', String.raw`/^\s+(.*)x$/`, /divide a run of " " between them/],
  ['a repetition in a repetition', '/^(a+)+$/', /divide a run of "a"/],
  ['a word between two runs', '/^.*password.*$/', /\.\* and \.\* divide the same text/],
  ['a long bound on both sides of a word', String.raw`/^\w{0,64}pwd\w{0,64}=/`, /divide the same text/],
  [
    'a block with a beginning of several characters',
    String.raw`/--BEGIN--[\s\S]*?--END--/g`,
    /reads \[\\s\\S\]\*\? again/,
  ],
  ['a long bound that is tried at each place', '/[^/]{256}/', /reads \[\^\/\]\{256\} again/],
  ['a repetition in a lookahead', '/ab(?=.*c)/g', /reads \.\* again/],
  ['constants of the file', 'const end = "+$";\nnew RegExp(`/${end}`)', /a\.ts:2 has \/\/\+\$\//],
  [
    'a pattern that is not constant',
    'const make = (word) => new RegExp(word)',
    /builds a regular expression of what is not known/,
  ],
])('the check finds %s', (_, code, sentence) => {
  expect(slowRegexes('a.ts', code)).toEqual([expect.stringMatching(sentence)]);
});

test.each([
  ['an anchored one', String.raw`/^[\w.-]{1,64}$/`],
  ['a string in quotes', '/"[^"]*"/g'],
  ['what cannot fail after its run', String.raw`/\s+/g`],
  ['a run that begins after another character', String.raw`/(?:^|[&?#])([\w.-]+)=/g`],
  ['a run that begins with a word', String.raw`/\b[a-z]\w*=/g`],
  ['a run with no such character before it', String.raw`/(?<![\w-])eyJ[\w-]{6,}\./g`],
  ['a line of a text', '/^Uid:.*x$/m'],
  ['a sticky one', String.raw`/\d+x/y`],
])('the check allows %s', (_, code) => {
  expect(slowRegexes('a.ts', code)).toEqual([]);
});

test('a reason at the line, or alone above it, excuses an expression', () => {
  expect(slowRegexes('a.ts', String.raw`/\/+$/.test(x); // not linear: the operator writes it`)).toEqual([]);
  expect(slowRegexes('a.ts', '// not linear: the kernel writes it\n/a+$/.test(x)')).toEqual([]);
  expect(slowRegexes('a.ts', 'f(); // not linear: of another line\n/a+$/.test(x)')).toHaveLength(1);
  expect(slowRegexes('a.ts', '/a+$/.test(x); // not linear:')).toHaveLength(1);
});

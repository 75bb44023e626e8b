/**
 * The keys of a headful session's display: those of an American keyboard, and additional ones for every
 * letter of Europe's alphabets.
 *
 * A viewer sends characters, not keys, whatever its layout. Xvnc looks for a key that writes the character, and
 * adds one where it finds none. But Chromium looks up keys in a copy of the keymap that it refreshes late,
 * so the first é's of a session were lost (two of them, a second apart, in a trial). Chromium knows a key that exists
 * from the start.
 */
/** There are not enough keys for all letters; no alphabet in use has these. The live view's page has the same list. */
const RARE = 'ĔĕĬĭŎŏĸĿŀŉŊŋŦŧſĲĳЀЍѐѝ\u038b\u038d\u03a2';

const onOrdinaryKeys = range(0xa1, 0xff).filter((codePoint) => codePoint !== 0xad); // Latin-1 without its soft hyphen

const onSpareKeys = [
  ...range(0x100, 0x17f), // Latin Extended-A
  ...range(0x218, 0x21b), // Romanian
  ...range(0x386, 0x3ce), // Greek
  ...range(0x400, 0x45f), // Cyrillic
  ...range(0x490, 0x491), // Ukrainian
  ...range(0x2013, 0x2014), // dashes
  ...range(0x2018, 0x201e), // quotation marks
  0x2026,
  0x20ac, // the euro
].filter((codePoint) => !RARE.includes(String.fromCharCode(codePoint)));

const typeable = new Set([...onOrdinaryKeys, ...onSpareKeys].map((codePoint) => String.fromCodePoint(codePoint)));

/** Whether a key of the display writes the character. */
export function isTypeable(character: string): boolean {
  return /^[\x20-\x7e\n\r\t]$/.test(character) || typeable.has(character);
}

/** Every key that writes a character, by its position. AltGr and AltGr with Shift are free on them. */
const ordinaryKeys = ['TLDE', ...row('AE', 12), ...row('AD', 12), ...row('AC', 11), 'BKSL', ...row('AB', 10)];

/**
 * Codes above those of ordinary keyboards that cannot be used: modifiers, and keys that trigger an action in a browser
 * whatever they write (copy, back, reload, close, print, play …).
 */
const busyCodes = new Set(
  [148, 150, 151, 158, 160, 163, 164, 180, 181, 182, 189, 190, 218, 220, 225, 231, 242].concat(
    range(166, 167),
    range(171, 174),
    range(203, 209),
    range(213, 216),
  ),
);
const spareCodes = range(147, 255).filter((code) => !busyCodes.has(code));

/** In xkbcomp's language. */
export function displayKeymap(): string {
  const ordinary = inGroupsOf(2, onOrdinaryKeys).map(
    (symbols, i) => `key <${ordinaryKeys[i]}> {[NoSymbol,NoSymbol,${symbols.map(keysym).join(',')}]};`,
  );
  const spare = inGroupsOf(4, onSpareKeys).map((symbols, i) => ({ code: spareCodes[i]!, symbols }));
  return `xkb_keymap {
xkb_keycodes {
include "evdev+aliases(qwerty)"
${spare.map(({ code }) => `<X${code}>=${code};`).join('')}
};
xkb_types { include "complete" };
xkb_compat { include "complete" };
xkb_symbols {
include "pc+us+level3(ralt_switch)"
${ordinary.join('\n')}
${spare.map(({ code, symbols }) => `key <X${code}> {type[Group1]="FOUR_LEVEL",symbols[Group1]=[${symbols.map(keysym).join(',')}]};`).join('\n')}
};
};`;
}

/** X11's keysym of a character: the code point up to Latin-1, with an offset beyond. The live view's page sends the same. */
function keysym(codePoint: number): string {
  return `0x${(codePoint <= 0xff ? codePoint : codePoint + 0x1000000).toString(16)}`;
}

function row(name: string, length: number): string[] {
  return range(1, length).map((place) => name + String(place).padStart(2, '0'));
}

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}

function inGroupsOf<T>(size: number, items: readonly T[]): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, i) => items.slice(i * size, (i + 1) * size));
}

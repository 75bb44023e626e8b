/**
 * The keys of a headful session's display: those of an American keyboard, and more keys than any keyboard has, one for every
 * letter of Europe's alphabets.
 *
 * A viewer sends characters, not keys, in whatever layout they type. Xvnc looks for a key that writes the character, and
 * where it finds none makes one up on the spot; but Chromium looks up keys in a copy of the keymap that it renews when it
 * likes, so the first é's of a session were lost (two of them, a second apart, when this was tried). A key that is there
 * from the start is known from the start.
 */
const letters: readonly (readonly [first: number, last: number])[] = [
  [0xa1, 0xff], // Latin-1
  [0x100, 0x17f], // Latin Extended-A
  [0x218, 0x21b], // Romanian
  [0x386, 0x3ce], // Greek
  [0x400, 0x45f], // Cyrillic
  [0x490, 0x491], // Ukrainian
  [0x2013, 0x2014], // dashes
  [0x2018, 0x201e], // quotation marks
  [0x2026, 0x2026],
  [0x20ac, 0x20ac], // the euro
];

/** The first key code that no keyboard of the `pc` kind uses. */
const FIRST_SPARE = 135;
const ON_ONE_KEY = 4;

/** In xkbcomp's language. */
export function displayKeymap(): string {
  const symbols = letters.flatMap(([first, last]) =>
    Array.from({ length: last - first + 1 }, (_, i) => keysym(first + i)),
  );
  const keys = Array.from({ length: Math.ceil(symbols.length / ON_ONE_KEY) }, (_, i) => ({
    code: FIRST_SPARE + i,
    symbols: symbols.slice(i * ON_ONE_KEY, (i + 1) * ON_ONE_KEY).join(','),
  }));
  return `xkb_keymap {
xkb_keycodes {
include "evdev+aliases(qwerty)"
${keys.map(({ code }) => `<X${code}>=${code};`).join('')}
};
xkb_types { include "complete" };
xkb_compat { include "complete" };
xkb_symbols {
include "pc+us+level3(ralt_switch)"
${keys.map(({ code, symbols }) => `key <X${code}> {type[Group1]="FOUR_LEVEL",symbols[Group1]=[${symbols}]};`).join('\n')}
};
};`;
}

/** X11's number for a character: itself up to Latin-1, and with a mark beyond. The page sends the same. */
function keysym(codePoint: number): string {
  return `0x${(codePoint <= 0xff ? codePoint : codePoint + 0x1000000).toString(16)}`;
}

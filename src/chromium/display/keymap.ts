import { keysymOf, onOrdinaryKeys, onSpareKeys, range } from './characters.ts';

/**
 * The keys of a headful session's display: those of an American keyboard, and additional ones for every
 * letter of Europe's alphabets.
 *
 * A viewer sends characters, not keys. Xvnc looks for a key that writes the character, and
 * adds one where it finds none. But Chromium looks up keys in a copy of the keymap that it refreshes late,
 * so the first é's of a session were lost (two of them, a second apart, in a trial). Chromium knows a key that exists
 * from the start.
 */

/** Every key that writes a character, by its position. AltGr and AltGr with Shift are free on them. */
const ordinaryKeys = ['TLDE', ...row('AE', 12), ...row('AD', 12), ...row('AC', 11), 'BKSL', ...row('AB', 10)];

/**
 * Codes above those of ordinary keyboards that cannot be used: modifiers, and keys that trigger an action in a browser
 * independent of their characters (copy, back, reload, close, print, play …).
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

function keysym(codePoint: number): string {
  return `0x${keysymOf(codePoint).toString(16)}`;
}

function row(name: string, length: number): string[] {
  return range(1, length).map((place) => name + String(place).padStart(2, '0'));
}

function inGroupsOf<T>(size: number, items: readonly T[]): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, i) => items.slice(i * size, (i + 1) * size));
}

/** A key as the display knows it (its X11 keysym) and as a page does. */
export interface Key {
  readonly keysym: number;
  /** `key`, `code` and `keyCode` of the page's event; `text` is the text that the key writes. */
  readonly key: string;
  readonly code: string;
  readonly keyCode: number;
  readonly text?: string;
  /** The key's CDP modifier: Alt 1, Control 2, Meta 4, Shift 8. */
  readonly modifier?: number;
  readonly location?: number;
}

type Row = readonly [names: string, keysym: number, key: string, code: string, keyCode: number];

/** X11's names first, then common ones. Case does not matter for names longer than one letter. */
const named: readonly Row[] = [
  ['Return enter linefeed', 0xff0d, 'Enter', 'Enter', 13],
  ['Tab', 0xff09, 'Tab', 'Tab', 9],
  ['ISO_Left_Tab', 0xfe20, 'Tab', 'Tab', 9],
  ['BackSpace', 0xff08, 'Backspace', 'Backspace', 8],
  ['Escape esc', 0xff1b, 'Escape', 'Escape', 27],
  ['Delete del', 0xffff, 'Delete', 'Delete', 46],
  ['Insert ins', 0xff63, 'Insert', 'Insert', 45],
  ['Home', 0xff50, 'Home', 'Home', 36],
  ['End', 0xff57, 'End', 'End', 35],
  ['Page_Up Prior pageup pgup', 0xff55, 'PageUp', 'PageUp', 33],
  ['Page_Down Next pagedown pgdn pgdown', 0xff56, 'PageDown', 'PageDown', 34],
  ['Left arrowleft arrow_left', 0xff51, 'ArrowLeft', 'ArrowLeft', 37],
  ['Up arrowup arrow_up', 0xff52, 'ArrowUp', 'ArrowUp', 38],
  ['Right arrowright arrow_right', 0xff53, 'ArrowRight', 'ArrowRight', 39],
  ['Down arrowdown arrow_down', 0xff54, 'ArrowDown', 'ArrowDown', 40],
  ['Pause', 0xff13, 'Pause', 'Pause', 19],
  ['Scroll_Lock scrolllock', 0xff14, 'ScrollLock', 'ScrollLock', 145],
  ['Print printscreen', 0xff61, 'PrintScreen', 'PrintScreen', 44],
  ['Menu contextmenu', 0xff67, 'ContextMenu', 'ContextMenu', 93],
  ['Caps_Lock capslock', 0xffe5, 'CapsLock', 'CapsLock', 20],
  ['Num_Lock numlock', 0xff7f, 'NumLock', 'NumLock', 144],
  ['XF86Back', 0x1008ff26, 'BrowserBack', 'BrowserBack', 166],
  ['XF86Forward', 0x1008ff27, 'BrowserForward', 'BrowserForward', 167],
  ['XF86Reload XF86Refresh', 0x1008ff73, 'BrowserRefresh', 'BrowserRefresh', 168],
  ['KP_Enter', 0xff8d, 'Enter', 'NumpadEnter', 13],
  ['KP_Add', 0xffab, '+', 'NumpadAdd', 107],
  ['KP_Subtract', 0xffad, '-', 'NumpadSubtract', 109],
  ['KP_Multiply', 0xffaa, '*', 'NumpadMultiply', 106],
  ['KP_Divide', 0xffaf, '/', 'NumpadDivide', 111],
  ['KP_Decimal', 0xffae, '.', 'NumpadDecimal', 110],
  ...Array.from({ length: 10 }, (_, n): Row => [`KP_${n}`, 0xffb0 + n, String(n), `Numpad${n}`, 96 + n]),
  ...Array.from({ length: 24 }, (_, n): Row => [`F${n + 1}`, 0xffbe + n, `F${n + 1}`, `F${n + 1}`, 112 + n]),
];

type Modifier = readonly [names: string, keysym: number, key: string, code: string, keyCode: number, bit: number];

const modifiers: readonly Modifier[] = [
  ['Shift_L Shift', 0xffe1, 'Shift', 'ShiftLeft', 16, 8],
  ['Shift_R', 0xffe2, 'Shift', 'ShiftRight', 16, 8],
  ['Control_L Control ctrl', 0xffe3, 'Control', 'ControlLeft', 17, 2],
  ['Control_R', 0xffe4, 'Control', 'ControlRight', 17, 2],
  ['Alt_L Alt option', 0xffe9, 'Alt', 'AltLeft', 18, 1],
  ['Alt_R', 0xffea, 'Alt', 'AltRight', 18, 1],
  ['Super_L Super Meta Meta_L cmd command win', 0xffeb, 'Meta', 'MetaLeft', 91, 4],
  ['Super_R Meta_R', 0xffec, 'Meta', 'MetaRight', 92, 4],
  ['ISO_Level3_Shift AltGr', 0xfe03, 'AltGraph', 'AltRight', 225, 0],
];

/** X11's names for printed characters. */
const symbols =
  'space exclam quotedbl numbersign dollar percent ampersand apostrophe parenleft parenright asterisk plus comma minus period slash';
const symbolNames = new Map<string, string>([
  ...symbols.split(' ').map((name, i): [string, string] => [name, String.fromCharCode(0x20 + i)]),
  ...Object.entries({
    colon: ':',
    semicolon: ';',
    less: '<',
    equal: '=',
    greater: '>',
    question: '?',
    at: '@',
    bracketleft: '[',
    backslash: '\\',
    bracketright: ']',
    asciicircum: '^',
    underscore: '_',
    grave: '`',
    braceleft: '{',
    bar: '|',
    braceright: '}',
    asciitilde: '~',
    eurosign: '€',
  }),
]);

const byName = new Map<string, Key>();
for (const [names, keysym, key, code, keyCode] of named) {
  const text = key === 'Enter' ? '\r' : key.length === 1 ? key : undefined;
  const location = code.startsWith('Numpad') ? 3 : 0;
  for (const name of names.split(' '))
    byName.set(name.toLowerCase(), { keysym, key, code, keyCode, location, ...(text !== undefined && { text }) });
}
for (const [names, keysym, key, code, keyCode, modifier] of modifiers) {
  const location = code.endsWith('Right') ? 2 : 1;
  for (const name of names.split(' '))
    byName.set(name.toLowerCase(), { keysym, key, code, keyCode, modifier, location });
}

/** The writing keys of an American keyboard: code, key code, and both characters they write. */
const american: readonly (readonly [string, number, string])[] = [
  ...'abcdefghijklmnopqrstuvwxyz'
    .split('')
    .map((c) => [`Key${c.toUpperCase()}`, c.toUpperCase().charCodeAt(0), c + c.toUpperCase()] as const),
  ...')!@#$%^&*('.split('').map((shifted, n) => [`Digit${n}`, 48 + n, `${n}${shifted}`] as const),
  ['Space', 32, ' '],
  ['Minus', 189, '-_'],
  ['Equal', 187, '=+'],
  ['BracketLeft', 219, '[{'],
  ['BracketRight', 221, ']}'],
  ['Backslash', 220, '\\|'],
  ['Semicolon', 186, ';:'],
  ['Quote', 222, `'"`],
  ['Backquote', 192, '`~'],
  ['Comma', 188, ',<'],
  ['Period', 190, '.>'],
  ['Slash', 191, '/?'],
];
const placeOf = new Map(
  american.flatMap(([code, keyCode, writes]) => Array.from(writes).map((c) => [c, { code, keyCode }])),
);

/** The key that writes a character; a character that is not on the keyboard is still a key of the display. */
export function characterKey(character: string): Key {
  if (character === '\n' || character === '\r') return byName.get('return')!;
  if (character === '\t') return byName.get('tab')!;
  const codePoint = character.codePointAt(0)!;
  const keysym = codePoint <= 0xff ? codePoint : codePoint + 0x1000000;
  const { code, keyCode } = placeOf.get(character) ?? { code: '', keyCode: 0 };
  return { keysym, key: character, code, keyCode, text: character };
}

/** Whether the character is on the American keyboard, which every page knows. */
export const isAmerican = (character: string) => placeOf.has(character) || /^[\n\r\t]$/.test(character);

/** One key by its name: an X11 keysym's, a common one, a character, U+20AC or 0xff0d. Undefined: no such key. */
export function keyNamed(name: string): Key | undefined {
  if (Array.from(name).length === 1) return /[\p{Cc}\p{Cs}]/u.test(name) ? undefined : characterKey(name);
  const found = byName.get(name.toLowerCase());
  if (found) return found;
  const symbol = symbolNames.get(name.toLowerCase());
  if (symbol !== undefined) return characterKey(symbol);
  const hex = /^U\+?([0-9A-Fa-f]{4,6})$/.exec(name)?.[1];
  const codePoint = hex === undefined ? undefined : Number.parseInt(hex, 16);
  if (
    codePoint !== undefined &&
    codePoint > 0x1f &&
    codePoint <= 0x10ffff &&
    (codePoint < 0xd800 || codePoint > 0xdfff)
  )
    return characterKey(String.fromCodePoint(codePoint));
  return undefined;
}

/** `Ctrl+Shift+t`, `a`, `Ctrl++`: the keys, in the order they are pressed. A string: the part that is not a key. */
export function chord(text: string): Key[] | string {
  const whole = keyNamed(text);
  if (whole) return [whole];
  const parts = text.endsWith('++') ? [...text.slice(0, -2).split('+'), '+'] : text.split('+');
  const keys: Key[] = [];
  for (const part of parts) {
    const key = keyNamed(part.length > 1 ? part.trim() : part);
    if (!key) return part;
    keys.push(key);
  }
  return keys;
}

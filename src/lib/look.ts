/**
 * The colours and fonts of all pages for people: the console, the hosted login page, the live view, replays and /docs. Each colour as it is
 * in the light and in the dark. Text and quiet text have a contrast of at least 4.5 on each of the grounds. A table instead of a style sheet,
 * because the console's components take colours as values.
 */
const colours = {
  /** Of a page that is read. */
  page: ['#ffffff', '#0e1013'],
  /** Behind cards. */
  ground: ['#eef0f3', '#0e1013'],
  card: ['#ffffff', '#171a1f'],
  sunken: ['#f6f7f9', '#1e2228'],
  line: ['#d8dce2', '#2d333b'],
  'strong-line': ['#868e99', '#6b7480'],
  text: ['#171a1f', '#e8ebef'],
  quiet: ['#59616d', '#a2abb7'],
  accent: ['#1f54c9', '#8ab0ff'],
  'accent-pressed': ['#17429f', '#a9c5ff'],
  'on-accent': ['#ffffff', '#0b1a3a'],
  good: ['#147a4a', '#5fc794'],
  warn: ['#8a5a00', '#d9a74a'],
  bad: ['#b3261e', '#ff9a92'],
  'bad-ground': ['#fdf0ef', '#2b1817'],
  'bad-line': ['#efc4c1', '#5c2c29'],
} as const satisfies Record<string, readonly [light: string, dark: string]>;

export const fonts = {
  plain: "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif",
  code: "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace",
};

export type Scheme = 'light' | 'dark';

/** The colour of this name in a scheme. */
export const colour = (name: keyof typeof colours, scheme: Scheme): string => colours[name][scheme === 'light' ? 0 : 1];

/** The colours as variables of CSS, such as `--quiet`, for elements that a selector names. */
export function coloursFor(selector: string, scheme: Scheme): string {
  const lines = (Object.keys(colours) as (keyof typeof colours)[]).map((name) => `--${name}:${colour(name, scheme)}`);
  return `${selector}{color-scheme:${scheme};${lines.join(';')}}`;
}

/** The style of a whole page: in the scheme of its reader, or always in one. */
export function look(scheme?: Scheme): string {
  const ofFonts = `:root{--plain:${fonts.plain};--code:${fonts.code}}`;
  if (scheme) return `${ofFonts}\n${coloursFor(':root', scheme)}\n`;
  const inTheDark = `@media (prefers-color-scheme:dark){${coloursFor(':root', 'dark')}}`;
  return `${ofFonts}\n${coloursFor(':root', 'light')}\n${inTheDark}\n`;
}

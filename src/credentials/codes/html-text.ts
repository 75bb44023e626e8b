/** Characters of a document that are read. */
const mostCharacters = 256 * 1024;

/** Elements without text for the reader. */
const hidden = new Set(['style', 'script', 'head', 'title', 'template', 'noscript', 'svg']);
/** Elements that the text does not flow through. */
const blocks = new Set(
  'address article aside blockquote body br center dd div dl dt fieldset figure footer form h1 h2 h3 h4 h5 h6 header hr li main nav ol p pre section table tbody tfoot thead tr ul'.split(
    ' ',
  ),
);
const cells = new Set(['td', 'th', 'button', 'option']);

/** The text of an HTML document, with a line for each block. It reads each character once. */
export function textOfHtml(html: string): string {
  const document = html.slice(0, mostCharacters);
  const lower = document.toLowerCase();
  // Some letters have a lower case of two characters.
  const names = lower.length === document.length ? lower : document;
  const parts: string[] = [];
  let at = 0;
  while (at < document.length) {
    const open = document.indexOf('<', at);
    if (open === -1) {
      parts.push(flowing(document.slice(at)));
      break;
    }
    parts.push(flowing(document.slice(at, open)));
    if (document.startsWith('<!--', open)) {
      at = after(document, '-->', open + 4);
      continue;
    }
    const name = nameAt(names, open + 1);
    if (name === undefined) {
      parts.push('<');
      at = open + 1;
      continue;
    }
    at = after(document, '>', open + 1);
    if (hidden.has(name)) {
      const end = names.indexOf(`</${name}`, at);
      at = end === -1 ? document.length : after(document, '>', end);
    } else if (blocks.has(name.replace('/', ''))) parts.push('\n');
    else if (cells.has(name)) parts.push(' ');
  }
  return parts.join('');
}

/** The position after the next `end`; the end of the document if there is none. */
function after(document: string, end: string, from: number): number {
  const at = document.indexOf(end, from);
  return at === -1 ? document.length : at + end.length;
}

const longestName = 12;

/** The name of a tag, with a slash for one that closes. Undefined for a `<` of the text. */
function nameAt(names: string, from: number): string | undefined {
  return /^[/!?]?[a-z][a-z\d:]*|^[!?]/i.exec(names.slice(from, from + longestName))?.[0];
}

const named: Record<string, string> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: ' ',
  zwnj: '',
  shy: '',
};

/** Line breaks of the source are blanks of the text. */
const flowing = (text: string): string =>
  text.replace(/\s+/g, ' ').replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|([a-z]{2,5}));/gi, (whole, decimal, hex, name) => {
    if (name !== undefined) return named[String(name).toLowerCase()] ?? whole;
    const code = decimal === undefined ? Number.parseInt(String(hex), 16) : Number(decimal);
    return code > 0 && code <= 0x10_ff_ff ? String.fromCodePoint(code) : ' ';
  });

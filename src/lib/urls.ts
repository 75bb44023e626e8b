/** A host name has 253 letters at most. */
const MOST_IN_HOST = 300;

/**
 * The URL; undefined if the text is not one. For text from outside: the parser's time grows with the square of the letters of a host that
 * are not ASCII, and of those after `xn--`. A host of 10,000 letters may take 0.3 s, and one of 160,000 with `xn--` 0.6 s. A longer host
 * than any name is no host.
 */
export function urlOf(text: string): URL | undefined {
  return hasLongHost(text) || !URL.canParse(text) ? undefined : new URL(text);
}

/** Of the schemes whose hosts the parser converts to ASCII. The origin of a `blob:` address is parsed when it is read. */
function hasLongHost(text: string): boolean {
  // The parser drops tabs and line ends, and characters before the scheme.
  const [, authority = ''] =
    /^[^a-z]*(?:blob:[^a-z]*)?(?:https?|wss?|ftp|file):[/\\]*([^/\\?#]*)/i.exec(text.replaceAll(/[\t\r\n]/g, '')) ?? [];
  return authority.length - authority.lastIndexOf('@') - 1 > MOST_IN_HOST;
}

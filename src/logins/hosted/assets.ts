import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { look } from '../../lib/look.ts';
import { guardedPage } from '../../lib/page-headers.ts';

/** The hosted page and its files. There is no build step: they are served as they are, after the colours of all pages. */

/**
 * The page runs its own files, speaks to its own service and frames its own live view, and nothing else. No site may frame
 * it: a person who types a password must see the address. Sites that want the login in a page of theirs exchange the
 * `handoff_code` themselves.
 */
const csp = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  'img-src data:',
  "connect-src 'self'",
  "frame-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

/** The address of the page has a code. */
export const pageHeaders = {
  'Content-Security-Policy': csp,
  ...guardedPage,
};

const here = import.meta.dirname;

/** The same for every flow: what it shows, it asks for with its code. */
export const hostedPage = readFileSync(join(here, 'page.html'));

const files = new Set([
  'style.css',
  ...['page', 'service', 'fields', 'choices', 'browser', 'return', 'words'].map((name) => `${name}.js`),
]);
const loaded = new Map<string, { type: string; body: Buffer }>();

/** The page loads one style sheet. Its second part is for what stands below the fields: the session's browser, the end, the small print. */
const styles = (read: (file: string) => Promise<Buffer>) => Promise.all(['style.css', 'outcome.css'].map(read));

/** The file of this name, or undefined if the page has none. */
export async function hostedAsset(name: string): Promise<{ type: string; body: Buffer } | undefined> {
  if (!files.has(name)) return undefined;
  const known = loaded.get(name);
  if (known) return known;
  const type = `${name.endsWith('.css') ? 'text/css' : 'text/javascript'}; charset=utf-8`;
  const read = (file: string) => readFile(join(here, file));
  const body = name === 'style.css' ? Buffer.concat([Buffer.from(look()), ...(await styles(read))]) : await read(name);
  const asset = { type, body };
  loaded.set(name, asset);
  return asset;
}

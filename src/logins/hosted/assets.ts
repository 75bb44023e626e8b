import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { look } from '../../lib/look.ts';
import { guardedPage } from '../../lib/page-headers.ts';
import { webFile } from '../../lib/web-files.ts';

/** The hosted page and its files: one script, and one style sheet after the colours of all pages. */

/**
 * The page runs its own files, speaks to its own service and frames its own live view, and nothing else. No site may frame
 * it: a person that types a password must see the address. Sites that want the login in a page of theirs exchange the
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
export const pageHeaders = { 'Content-Security-Policy': csp, ...guardedPage };

/** The same for every flow: what it shows, it asks for with its code. */
export const hostedPage = readFileSync(join(import.meta.dirname, 'page.html'));

interface HostedAsset {
  readonly type: string;
  readonly body: Buffer;
}

const files = new Map<string, () => HostedAsset>([
  ['page.js', () => ({ type: 'text/javascript; charset=utf-8', body: webFile('logins/hosted/web/page.js') })],
  [
    'style.css',
    () => ({
      type: 'text/css; charset=utf-8',
      body: Buffer.concat([Buffer.from(look()), webFile('logins/hosted/web/style.css')]),
    }),
  ],
]);
const loaded = new Map<string, HostedAsset>();

/** The file of this name, or undefined if the page has none. */
export function hostedAsset(name: string): HostedAsset | undefined {
  const asset = loaded.get(name) ?? files.get(name)?.();
  if (asset) loaded.set(name, asset);
  return asset;
}

import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { accepts } from '../lib/accept-encoding.ts';
import { guardedPage } from '../lib/page-headers.ts';

/** The console's page and files, as scripts/console.mjs builds them. The same place from src/ and from dist/. */
const builtConsole = join(import.meta.dirname, '../../dist/console/web');

const types: Record<string, string> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
};
const codings = { br: '.br', gzip: '.gz' } as const;

interface WebAnswer {
  headers: Record<string, string>;
  body: Buffer | string;
}

/**
 * Serves the files of the folder, which is listed once: other names are not served, so no path reaches outside of it.
 * `frames` are the origins of live views: those of other nodes differ from the page's own.
 */
export function consoleWeb({ folder = builtConsole, frames }: { folder?: string; frames: () => readonly string[] }) {
  const assets = join(folder, 'assets');
  let names: Set<string> | undefined;
  const listed = () => (names ??= new Set(existsSync(assets) ? readdirSync(assets) : []));
  const loaded = new Map<string, Promise<Buffer>>();
  const load = (path: string) => {
    const known = loaded.get(path);
    if (known) return known;
    const reading = readFile(path);
    loaded.set(path, reading);
    reading.catch(() => loaded.delete(path));
    return reading;
  };

  return {
    /** The page, which is the same for every address of the console; undefined when the console was not built. */
    async page(): Promise<WebAnswer | undefined> {
      const path = join(folder, 'index.html');
      if (!existsSync(path)) return undefined;
      const nonce = randomBytes(16).toString('base64');
      const html = (await load(path)).toString('utf8').replace('{{nonce}}', nonce);
      return { headers: pageHeaders(nonce, frames()), body: html };
    },

    /** A file by its name, which has a hash of its content. */
    async asset(name: string, accepted = ''): Promise<WebAnswer | undefined> {
      const type = types[/\.(\w+)$/.exec(name)?.[1] ?? ''];
      if (!type || !listed().has(name)) return undefined;
      const coding = (['br', 'gzip'] as const).find(
        (coding) => accepts(accepted, coding) && listed().has(name + codings[coding]),
      );
      return {
        headers: {
          'Content-Type': type,
          'Cache-Control': 'public, max-age=31536000, immutable',
          Vary: 'Accept-Encoding',
          'Cross-Origin-Resource-Policy': 'same-origin',
          ...(coding && { 'Content-Encoding': coding }),
        },
        body: await load(join(assets, coding ? name + codings[coding] : name)),
      };
    },
  };
}

/**
 * The page runs its own files only, speaks to its own origin only, and no site may frame it. The components add style elements while they
 * run; those carry the nonce, which no markup from elsewhere can know.
 */
function pageHeaders(nonce: string, frames: readonly string[]): Record<string, string> {
  return {
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy': [
      "default-src 'none'",
      "script-src 'self'",
      `style-src 'self' 'nonce-${nonce}'`,
      "img-src 'self' data: blob:",
      "media-src 'self' blob:",
      "font-src 'self'",
      "connect-src 'self'",
      `frame-src ${["'self'", ...new Set(frames)].join(' ')}`,
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ].join('; '),
    ...guardedPage,
  };
}

/** The origins of these addresses, as a content security policy names them. */
export const frameOrigins = (urls: readonly string[]): string[] =>
  urls.flatMap((url) => /^(https?:\/\/[^/\s;,']+)/.exec(url)?.[1] ?? []);

import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants } from 'node:zlib';
import { coloursFor, look } from '../lib/look.ts';
import { webFile } from '../lib/web-files.ts';

/** The files of the reference's page. They are read when the first reader asks for them: most services have none. */

/** The renderer, one file of 3.5 MB in its package. */
const renderer = () =>
  join(dirname(createRequire(import.meta.url).resolve('@scalar/fastify-api-reference')), 'js', 'standalone.js');

/** The renderer switches between the schemes by a class, independent of the reader's scheme. */
const before = () => look() + coloursFor('.light-mode', 'light') + coloursFor('.dark-mode', 'dark');

const files: Readonly<Record<string, { type: string; read: () => Buffer | Promise<Buffer>; before?: () => string }>> = {
  'renderer.js': { type: 'text/javascript', read: () => readFile(renderer()) },
  'start.js': { type: 'text/javascript', read: () => webFile('docs/web/start.js') },
  'style.css': { type: 'text/css', read: () => webFile('docs/web/style.css'), before },
};

interface DocsAsset {
  readonly type: string;
  readonly plain: Buffer;
  readonly compressed: Buffer;
}

const read = new Map<string, Promise<DocsAsset>>();

export function docsAsset(name: string): Promise<DocsAsset> | undefined {
  const file = Object.hasOwn(files, name) ? files[name] : undefined;
  if (!file) return undefined;
  let asset = read.get(name);
  if (!asset) {
    asset = load(file);
    read.set(name, asset);
    asset.catch(() => read.delete(name)); // the next reader tries again
  }
  return asset;
}

async function load({ type, read, before }: (typeof files)[string]): Promise<DocsAsset> {
  const plain = Buffer.concat([Buffer.from(before?.() ?? ''), await read()]);
  const compressed = await promisify(brotliCompress)(plain, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }); // 0.1 s; 9 takes 1 s for 7 %
  return { type: `${type}; charset=utf-8`, plain, compressed };
}

/** `inline` styles are the renderer's own: it writes them while it draws. Nothing is loaded from other servers. */
export const docsHeaders = {
  'Content-Security-Policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    'font-src data:',
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'Referrer-Policy': 'no-referrer',
  'X-Frame-Options': 'DENY',
};

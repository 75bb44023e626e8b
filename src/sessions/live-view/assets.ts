import { readFile } from 'node:fs/promises';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/** The live view's page and its assets. There is no build step: the files are served as they are, and noVNC as its package provides it. */

export interface LiveViewAsset {
  readonly type: string;
  readonly body: Buffer;
}

export interface LiveViewPage {
  readonly kind: 'display' | 'screencast';
  /** The path of the websocket, relative to the page, so that it works behind any proxy path. */
  readonly socketPath: string;
  /** The path at which `liveViewAsset` is served, relative to the page. */
  readonly assetsPath?: string;
  readonly title: string;
  readonly readOnly: boolean;
}

/** The page runs only its own files, and any site may frame it: the address contains the token. */
export const liveViewCsp = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:", // pictures of the session, and noVNC's mouse pointer
  "connect-src 'self' ws: wss:", // 'self' does not include websockets in every browser
  "base-uri 'none'",
  "form-action 'none'",
  'frame-ancestors *',
].join('; ');

const here = import.meta.dirname;
const noVnc = dirname(dirname(createRequire(import.meta.url).resolve('@novnc/novnc'))); // it resolves to core/rfb.js

const own = new Set([
  'style.css',
  ...['view', 'screencast', 'display', 'picture', 'tabs', 'dialog', 'pointer', 'keys', 'keyboard', 'clipboard'].map(
    (name) => `${name}.js`,
  ),
]);
const ofNoVnc = /^novnc\/((?:core|vendor)(?:\/[a-z\d][\w-]*)*\/[a-z\d][\w-]*\.js)$/i;

const loaded = new Map<string, LiveViewAsset>();
const template = readFileSync(join(here, 'page.html'), 'utf8');

/** The file at this path below the assets' path, or undefined if there is none. */
export async function liveViewAsset(path: string): Promise<LiveViewAsset | undefined> {
  const known = loaded.get(path);
  if (known) return known;
  const file = own.has(path) ? join(here, path) : inNoVnc(path);
  const body = file === undefined ? undefined : await readFile(file).catch(() => undefined);
  if (!body) return undefined;
  const asset = { type: `${path.endsWith('.css') ? 'text/css' : 'text/javascript'}; charset=utf-8`, body };
  loaded.set(path, asset);
  return asset;
}

function inNoVnc(path: string): string | undefined {
  const inside = ofNoVnc.exec(path)?.[1];
  return inside === undefined ? undefined : join(noVnc, inside);
}

/** The page itself. Serve it with `liveViewCsp`, and with no-store: it belongs to one session. */
export function liveViewPage({ kind, socketPath, assetsPath = 'live/assets/', title, readOnly }: LiveViewPage): string {
  const values = new Map(Object.entries({ kind, socketPath, assetsPath, title, readOnly: String(readOnly) }));
  return template.replace(/\{\{(\w+)\}\}/g, (_, name: string) => escapeHtml(values.get(name) ?? ''));
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

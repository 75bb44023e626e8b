import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { accepts } from '../../lib/accept-encoding.ts';
import { makeBundles, type BundleKind, type ViewKind } from './bundle.ts';

/** The live view's page and the files that it loads: one script and one style sheet, compressed, under names of their content. */

interface LiveViewAsset {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

interface LiveViewPage {
  readonly kind: ViewKind;
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

const NAME = /^(style|display|screencast)\.[\w-]{12}\.(?:js|css)$/;
const fileOf = (name: string) => readFileSync(join(import.meta.dirname, name), 'utf8');
const templateOf = (name: string) => fileOf(name).replace('<!-- head.html -->', () => fileOf('head.html'));
const templates = { page: templateOf('page.html'), refused: templateOf('refused.html') };

let bundles: ReturnType<typeof makeBundles> | undefined;

/** Reads and compresses the files, once. The service calls it when it starts, so that the first viewer does not wait for it. */
export function prepareLiveView(): ReturnType<typeof makeBundles> {
  bundles ??= makeBundles().catch((error: unknown) => {
    bundles = undefined; // the next viewer tries again
    throw error;
  });
  return bundles;
}

/** The file at this path below the assets' path, or undefined if there is none. `accepted` is the request's Accept-Encoding. */
export async function liveViewAsset(path: string, accepted = ''): Promise<LiveViewAsset | undefined> {
  const kind = NAME.exec(path)?.[1];
  const bundle = kind === undefined ? undefined : (await prepareLiveView()).get(kind as BundleKind);
  if (!bundle) return undefined;
  const coding = (['br', 'gzip'] as const).find((name) => accepts(accepted, name));
  return {
    headers: {
      'Content-Type': bundle.type,
      // Nodes of another version have other hashes. During an upgrade, a page may come from one and ask another.
      'Cache-Control': path === bundle.name ? 'public, max-age=31536000, immutable' : 'no-cache',
      Vary: 'Accept-Encoding',
      ...(coding && { 'Content-Encoding': coding }),
    },
    body: bundle[coding ?? 'plain'],
  };
}

/** The page itself. Serve it with `liveViewCsp`, and with no-store: it belongs to one session. */
export async function liveViewPage(page: LiveViewPage): Promise<string> {
  const { kind, socketPath, assetsPath = 'live/assets/', title, readOnly } = page;
  const made = await prepareLiveView();
  const at = (part: BundleKind) => assetsPath + made.get(part)!.name;
  return fill('page', { kind, socketPath, script: at(kind), style: at('style'), title, readOnly: String(readOnly) });
}

/** The page for links that show no session, by the status of the refusal. */
const refusals = {
  invalid: {
    title: 'This link does not work.',
    advice:
      'It has expired, or it was cut or changed when it was copied. Copy the whole link again, or ask for a new one where you got it.',
  },
  ended: {
    title: 'The session has ended.',
    advice: 'A link works while its session runs. Ask for a new one where you got it.',
  },
  notNow: { title: 'The session cannot be shown now.', advice: 'Reload this page in a moment.' },
};

/**
 * The page instead of the live view: serve it with `liveViewCsp` and no-store. `assetsPath` is the relative path to the files of
 * `liveViewAsset`.
 */
export async function liveViewRefusal(
  { status, code, detail }: { status: number; code: string; detail: string },
  assetsPath = 'live/assets/',
): Promise<string> {
  const ended = status === 410 || (status === 404 && code !== 'not_found');
  const kind = ended ? 'ended' : status < 429 ? 'invalid' : 'notNow';
  const made = await prepareLiveView();
  return fill('refused', { ...refusals[kind], detail, style: assetsPath + made.get('style')!.name });
}

function fill(template: keyof typeof templates, given: Record<string, string>): string {
  const values = new Map(Object.entries(given));
  return templates[template].replace(/\{\{(\w+)\}\}/g, (_, name: string) => escapeHtml(values.get(name) ?? ''));
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

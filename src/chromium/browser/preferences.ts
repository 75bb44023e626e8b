import { isLight } from '../../lib/json-weight.ts';
import { rewrite } from '../sandbox/outside.ts';
import type { Owner } from '../sandbox/owners.ts';

/**
 * Under a window manager Chromium draws title bars itself, which makes the page of a headful browser smaller, unless its profile says
 * otherwise. There is no flag and no policy for it.
 */
export async function framesByWindowManager(dir: string, owner: Owner): Promise<void> {
  await rewrite({ dir, within: ['home', 'user-data', 'Default'], name: 'Preferences' }, owner, withoutOwnFrame);
}

/** Names and values of the preferences. Those of a profile with hundreds of sites have some ten thousand. */
const MOST_VALUES = 200_000;

/**
 * Text that is not JSON is not changed: Chromium then starts with new preferences. A session writes the file, and to parse and write 8 MB
 * of empty lists took 1.3 s, so text of very many values is not changed either.
 */
export function withoutOwnFrame(text = '{}'): string | undefined {
  if (!isLight(text, MOST_VALUES)) return undefined;
  let preferences: unknown;
  try {
    preferences = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isRecord(preferences)) return undefined;
  const { browser } = preferences;
  if (isRecord(browser) && browser['custom_chrome_frame'] === false) return undefined;
  return JSON.stringify({ ...preferences, browser: { ...(isRecord(browser) && browser), custom_chrome_frame: false } });
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

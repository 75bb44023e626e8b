import { rewrite } from '../sandbox/outside.ts';
import type { Owner } from '../sandbox/owners.ts';

/**
 * Under a window manager Chromium draws title bars itself, which makes the page of a headful browser smaller, unless its profile says
 * otherwise. There is no flag and no policy for it.
 */
export async function framesByWindowManager(dir: string, owner: Owner): Promise<void> {
  await rewrite({ dir, within: ['home', 'user-data', 'Default'], name: 'Preferences' }, owner, withoutOwnFrame);
}

/** Text that is not JSON is not changed: Chromium then starts with new preferences. */
export function withoutOwnFrame(text = '{}'): string | undefined {
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

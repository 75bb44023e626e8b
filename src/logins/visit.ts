import { createHash } from 'node:crypto';
import type { Recipe } from './flow/types.ts';
import type { Forms } from '../sessions/forms.ts';

const settleMs = 10_000;

/** The number of origins with inspected storage: each costs a page. */
const mostOrigins = 3;

/**
 * What a profile is logged in by, as one text that is equal while it is: the cookies and the storage that the login changed, if it is known
 * which, otherwise all cookies. Undefined when the browser does not answer.
 */
export async function loginState(
  forms: Pick<Forms, 'pages' | 'state' | 'stored'>,
  recipe: Recipe | undefined,
): Promise<string | undefined> {
  try {
    const [page] = await forms.pages();
    if (!page) return undefined;
    const names = recipe?.success.cookies ?? [];
    const origins = (recipe?.success.storage ?? []).slice(0, mostOrigins);
    // Before the storage: its page may make the site renew its cookies.
    const { cookies } = await forms.state(page.pageId);
    const kept = cookies
      .filter(({ name }) => (names.length === 0 && origins.length === 0) || names.includes(name))
      .map(({ name, domain, path, hash }) => JSON.stringify([name, domain, path, hash]));
    for (const origin of origins) {
      const { storage } = await forms.stored(origin);
      for (const one of storage) if (one.origin === origin) kept.push(JSON.stringify([origin, one.keys, one.hash]));
    }
    return createHash('sha256').update(kept.sort().join('\n')).digest('base64url');
  } catch {
    return undefined;
  }
}

/** Opens where the login ended, as the login left it: the tabs of this browser are the ones that are saved with the profile. */
export async function leaveOpen(
  forms: Pick<Forms, 'pages' | 'navigate' | 'settled'>,
  address: string | null,
  signal: AbortSignal,
): Promise<void> {
  try {
    const [page] = await forms.pages();
    if (!page || address === null) return;
    await forms.navigate(page.pageId, address);
    await forms.settled(page.pageId, { deadlineMs: settleMs, signal });
  } catch {
    // A profile without a tab is better than a logged-out one.
  }
}

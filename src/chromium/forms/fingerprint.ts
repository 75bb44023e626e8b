import { createHmac, randomBytes } from 'node:crypto';
import { anyText, flag, list, object, optional } from '../../lib/shape.ts';
import { started } from '../../lib/started.ts';
import type { AttachedPage, PageCommands } from './attached-pages.ts';
import type { PageFrames } from './frames.ts';
import type { StateFingerprint } from './types.ts';
import type { WorldCalls } from './world-calls.ts';

const MOST_COOKIES = 3000;

export const isCookies = object({
  cookies: list(
    object({
      name: anyText,
      value: anyText,
      domain: anyText,
      path: anyText,
      httpOnly: flag,
      session: optional(flag),
    }),
  ),
});

/**
 * The browser's storage for the sites, as numbers that only show whether it changed. Each `Forms` has a
 * new key for the hash, which never leaves it: short values cannot be guessed from their hashes.
 */
export function fingerprints(commands: PageCommands, frames: PageFrames, calls: WorldCalls) {
  const { patience } = commands;
  const key = randomBytes(32);
  const seed = randomBytes(4).readUInt32BE();
  const hashOf = (value: string) => createHmac('sha256', key).update(value).digest('base64url').slice(0, 16);

  return async function state(page: AttachedPage): Promise<StateFingerprint> {
    const asked = started(commands.ask(patience.main, page.sessionId, isCookies, 'Network.getAllCookies', {}));
    const worlds = await frames.worlds(page);
    const stores = await Promise.all(
      worlds.map((frame) =>
        calls.call(frame, frame.parent ? patience.frame : patience.main, 'storage', seed).catch(() => undefined),
      ),
    );
    const { cookies } = await asked;
    const byOrigin = new Map(
      stores
        .filter((store) => store !== undefined)
        .map(({ origin, keys, hash }) => [origin, { origin, keys, hash: hash.toString(36) }]),
    );
    return {
      cookies: cookies.slice(0, MOST_COOKIES).map(({ name, value, domain, path, httpOnly, session }) => ({
        name: name.slice(0, 300),
        domain: domain.slice(0, 300),
        path: path.slice(0, 300),
        hash: hashOf(value),
        httpOnly,
        session: session ?? false,
      })),
      storage: [...byOrigin.values()],
    };
  };
}

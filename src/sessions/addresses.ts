import { errors } from '../errors.ts';
import type { Claims, Tokens } from '../lib/tokens.ts';

/** The purpose of a token. A live view token cannot drive the browser over CDP, and a CDP token cannot read files. */
export type Purpose = 'cdp' | 'webdriver' | 'live' | 'base' | 'replay';

/** The key and the project that a token is made for. The token is valid for as long as both are. */
export interface Minter {
  keyId: string;
  projectId: string;
}

/** The session that a token gives access to, and how. */
export interface Admission {
  sessionId: string;
  minter: Minter;
  /** The token is for watching only, whatever else the address says. */
  watchOnly: boolean;
}

/** The longest time a session may idle. A token ends with its session in any case, and every answer carries fresh ones. */
export const lifeSeconds = 72 * 60 * 60;

export type LapseOf = (minter: Minter) => Promise<'key' | 'project' | undefined>;

const lapses = {
  key: 'with a key that was revoked or has expired',
  project: 'in a project that was archived or deleted',
};

export type Addresses = ReturnType<typeof addresses>;

/** The four addresses of a session, each with a token of its own, and the check of such tokens. */
export function addresses({
  tokens,
  publicUrl,
  leaseOf,
  lapseOf,
}: {
  tokens: Tokens;
  /** The public URL of a node. Without an id, or if that node is gone, the URL of this node. */
  publicUrl: (nodeId?: string) => string;
  /** The current lease of a session on this node; null without a lease, undefined when the session is not on this node. */
  leaseOf: (sessionId: string) => string | null | undefined;
  /** Which of the key and the project is no longer valid; undefined while both are. */
  lapseOf: LapseOf;
}) {
  const token = (holder: string, purpose: Purpose, { keyId, projectId }: Minter, seconds = lifeSeconds, more = {}) =>
    tokens.sign({
      sub: holder,
      aud: purpose,
      exp: Math.floor(Date.now() / 1000) + seconds,
      key: keyId,
      project: projectId,
      ...more,
    });
  /** A token with a lease is valid for that lease only: a pool may lend the same browser to another client after it. */
  const holderOf = (sessionId: string, lease: string | null | undefined) =>
    lease ? `${sessionId}.${lease}` : sessionId;

  return {
    of(sessionId: string, minter: Minter, nodeId?: string, lease: string | null | undefined = leaseOf(sessionId)) {
      const holder = holderOf(sessionId, lease);
      const http = publicUrl(nodeId);
      const ws = http.replace(/^http/, 'ws');
      return {
        cdp_ws_url: `${ws}/browser/cdp?jwt=${token(holder, 'cdp', minter)}`,
        webdriver_ws_url: `${ws}/browser/webdriver/session?jwt=${token(holder, 'webdriver', minter)}`,
        browser_live_view_url: `${http}/browser/live?jwt=${token(holder, 'live', minter)}`,
        // The token is in the path, not in the query: tools append /json/version to the URL as it is.
        base_url: `${http}/browser/kernel/${token(holder, 'base', minter)}`,
      };
    },

    /** A link to the live view to hand on, with its own lifetime and, if requested, for watching only. */
    ofLiveView(
      session: { id: string; nodeId: string; lease: string | null },
      minter: Minter,
      { watchOnly, seconds }: { watchOnly: boolean; seconds: number },
    ): string {
      const more = watchOnly ? { watch_only: true } : {};
      const jwt = token(holderOf(session.id, session.lease), 'live', minter, seconds, more);
      return `${publicUrl(session.nodeId)}/browser/live?jwt=${jwt}`;
    },

    /** The page that shows a video of a session, which may have ended. */
    ofReplay(sessionId: string, replayId: string, nodeId: string, minter: Minter) {
      return `${publicUrl(nodeId)}/browser/replays?jwt=${token(sessionId, 'replay', minter)}&replay_id=${replayId}`;
    },

    /** The session a token is for, and the key and project it was made for. */
    async admit(given: string | undefined, purpose: Purpose): Promise<Admission> {
      if (!given)
        throw errors.unauthorized({
          detail: 'The address has no token (jwt). Use the one that the session’s answer carries, whole.',
        });
      const claims = tokens.verify(given);
      if (claims === 'expired') {
        throw errors.unauthorized({
          detail: 'The token of this address has expired. GET /browsers/{id} answers with a fresh one.',
        });
      }
      const minter = typeof claims === 'string' ? undefined : minterOf(claims);
      if (typeof claims === 'string' || !minter)
        throw errors.unauthorized({ detail: 'The token of this address is not one of ours.' });
      if (claims.aud !== purpose) {
        throw errors.forbidden({
          detail: `This token is for ${claims.aud}, not for ${purpose}. Each address of a session has its own.`,
        });
      }
      const [sessionId = '', lease = null] = claims.sub.split('.');
      const current = leaseOf(sessionId);
      // Another node than the session's does not know the lease; the session's node checks it again.
      if (current !== undefined && current !== lease) throw errors.session_not_found({ session: sessionId });
      const lapse = await lapseOf(minter);
      if (lapse) throw errors.unauthorized({ detail: `This address was made ${lapses[lapse]}. Ask for another.` });
      return { sessionId, minter, watchOnly: claims['watch_only'] === true };
    },
  };
}

function minterOf({ key, project }: Claims): Minter | undefined {
  return typeof key === 'string' && typeof project === 'string' ? { keyId: key, projectId: project } : undefined;
}

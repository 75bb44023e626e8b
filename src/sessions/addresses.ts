import { errors } from '../errors.ts';
import type { Claims, Tokens } from '../lib/tokens.ts';

/** What a token is for. One for watching cannot drive, and one for CDP cannot read files. */
export type Purpose = 'cdp' | 'webdriver' | 'live' | 'base' | 'replay';

/** Under whose authority a token is made. It is good for as long as that key and that project are. */
export interface Minter {
  keyId: string;
  projectId: string;
}

/** Whom a token lets in. */
export interface Admission {
  sessionId: string;
  minter: Minter;
  /** The token is for looking on, whatever the address says besides. */
  watchOnly: boolean;
}

/** As long as a session may idle. A token ends with its session in any case, and every answer carries fresh ones. */
export const lifeSeconds = 72 * 60 * 60;

export type LapseOf = (minter: Minter) => Promise<'key' | 'project' | undefined>;

const lapses = {
  key: 'with a key that was revoked or has expired',
  project: 'in a project that was archived or deleted',
};

export type Addresses = ReturnType<typeof addresses>;

/** The four addresses of a session, each with a token of its own, and who a token lets in. */
export function addresses({
  tokens,
  publicUrl,
  leaseOf,
  lapseOf,
}: {
  tokens: Tokens;
  /** Where clients reach a node; this one when it is not said which, or when that one is not there. */
  publicUrl: (nodeId?: string) => string;
  /** The lease under which a session of this node is held; null without one, undefined when it is not here. */
  leaseOf: (sessionId: string) => string | null | undefined;
  /** Which of a key and a project is no longer good; undefined while both are. */
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
  /** With a lease it is good for that lease alone: a pool may lend the same browser to somebody else after it. */
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
        // In the path, not in the query: tools append /json/version to it as it is.
        base_url: `${http}/browser/kernel/${token(holder, 'base', minter)}`,
      };
    },

    /** A link to the live view for somebody else: for as long as is said, and for looking on where that is said. */
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

    /** The session a token is for, and under whose authority. */
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
      // On another node than the session's this is not known; that node asks again.
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

import { errors } from '../errors.ts';
import type { Tokens } from '../lib/tokens.ts';

/** What a token is for. One for watching cannot drive, and one for CDP cannot read files. */
export type Purpose = 'cdp' | 'webdriver' | 'live' | 'base' | 'replay';

/** As long as a session may idle. A token ends with its session in any case, and every answer carries fresh ones. */
const lifeSeconds = 72 * 60 * 60;

export type Addresses = ReturnType<typeof addresses>;

/** The four addresses of a session, each with a token of its own, and who a token lets in. */
export function addresses({
  tokens,
  publicUrl,
  leaseOf,
}: {
  tokens: Tokens;
  /** Where clients reach a node; this one when it is not said which, or when that one is not there. */
  publicUrl: (nodeId?: string) => string;
  /** The lease under which a session of this node is held; null without one, undefined when it is not here. */
  leaseOf: (sessionId: string) => string | null | undefined;
}) {
  const token = (holder: string, purpose: Purpose) =>
    tokens.sign({ sub: holder, aud: purpose, exp: Math.floor(Date.now() / 1000) + lifeSeconds });

  return {
    /** With a lease they are good for that lease alone: a pool may lend the same browser to somebody else after it. */
    of(sessionId: string, nodeId?: string, lease: string | null | undefined = leaseOf(sessionId)) {
      const holder = lease ? `${sessionId}.${lease}` : sessionId;
      const http = publicUrl(nodeId);
      const ws = http.replace(/^http/, 'ws');
      return {
        cdp_ws_url: `${ws}/browser/cdp?jwt=${token(holder, 'cdp')}`,
        webdriver_ws_url: `${ws}/browser/webdriver/session?jwt=${token(holder, 'webdriver')}`,
        browser_live_view_url: `${http}/browser/live?jwt=${token(holder, 'live')}`,
        // In the path, not in the query: tools append /json/version to it as it is.
        base_url: `${http}/browser/kernel/${token(holder, 'base')}`,
      };
    },

    /** The page that shows a video of a session, which may have ended. */
    ofReplay(sessionId: string, replayId: string, nodeId: string) {
      return `${publicUrl(nodeId)}/browser/replays?jwt=${token(sessionId, 'replay')}&replay_id=${replayId}`;
    },

    /** The session a token is for. */
    admit(given: string | undefined, purpose: Purpose): string {
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
      if (typeof claims === 'string')
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
      return sessionId;
    },
  };
}

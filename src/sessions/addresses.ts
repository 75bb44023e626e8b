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
}: {
  tokens: Tokens;
  /** Where clients reach a node; this one when it is not said which, or when that one is not there. */
  publicUrl: (nodeId?: string) => string;
}) {
  const token = (sessionId: string, purpose: Purpose) =>
    tokens.sign({ sub: sessionId, aud: purpose, exp: Math.floor(Date.now() / 1000) + lifeSeconds });

  return {
    of(sessionId: string, nodeId?: string) {
      const http = publicUrl(nodeId);
      const ws = http.replace(/^http/, 'ws');
      return {
        cdp_ws_url: `${ws}/browser/cdp?jwt=${token(sessionId, 'cdp')}`,
        webdriver_ws_url: `${ws}/browser/webdriver/session?jwt=${token(sessionId, 'webdriver')}`,
        browser_live_view_url: `${http}/browser/live?jwt=${token(sessionId, 'live')}`,
        // In the path, not in the query: tools append /json/version to it as it is.
        base_url: `${http}/browser/kernel/${token(sessionId, 'base')}`,
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
      return claims.sub;
    },
  };
}

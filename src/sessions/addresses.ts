import { errors } from '../errors.ts';
import type { Claims, Tokens } from '../lib/tokens.ts';
import { lifeSeconds } from './schema.ts';

/** The purpose of a token. A live view token cannot drive the browser over CDP, and a CDP token cannot read files. */
export type Purpose = 'cdp' | 'webdriver' | 'live' | 'base' | 'replay';

/** The key and the project that a token is made for. The token is valid for as long as both are. */
export interface Minter {
  keyId: string;
  projectId: string;
}

/** The session that a token gives access to, and how. */
interface Admission {
  sessionId: string;
  minter: Minter;
  /** The token is for watching only, also if the address has other parameters. */
  watchOnly: boolean;
}

export type LapseOf = (minter: Minter) => Promise<'key' | 'project' | undefined>;

const lapses = {
  key: 'with a key that was revoked or has expired',
  project: 'in a project that was archived or deleted',
};

/** The prefix of the label of a session's host, in the place of the token of a path. */
const LABEL = '~';

export type Addresses = ReturnType<typeof addresses>;

/** The four addresses of a session, each with a token of its own, and the check of such tokens. */
export function addresses({
  tokens,
  publicUrl,
  sessionHosts = '',
  leaseOf,
  projectOf,
  lapseOf,
}: {
  tokens: Tokens;
  /** The public URL of a node. Without an id, or if that node is lost, the URL of this node. */
  publicUrl: (nodeId?: string) => string;
  /** The address of each session of this node, with `*` for its label; empty: the token is in the path. */
  sessionHosts?: string;
  /** The project of a session. */
  projectOf?: (sessionId: string) => Promise<string | undefined>;
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

  /** The token of a host: a label has 63 characters at most, which is too short for a token. */
  function labelOf(sessionId: string, { keyId }: Minter, lease: string | null | undefined): string | undefined {
    const [, key] = /^key_([a-z\d]{24})$/.exec(keyId) ?? [];
    if (sessionHosts === '' || key === undefined || !/^[a-z\d]{24}$/.test(sessionId)) return undefined;
    return `${sessionId}${key}${tokens.mark(sessionId, keyId, lease ?? '')}`;
  }

  /** Whether a label is good, on the node that has its session: other nodes do not know its lease. */
  async function claimsOf(label: string): Promise<{ sessionId: string; minter: Minter } | undefined> {
    const [, sessionId = '', key = '', mark = ''] = /^([a-z\d]{24})([a-z\d]{24})([a-z\d]{15})$/.exec(label) ?? [];
    const keyId = `key_${key}`;
    const lease = leaseOf(sessionId);
    if (lease === undefined || !tokens.isMark(mark, sessionId, keyId, lease ?? '')) return undefined;
    const projectId = await projectOf?.(sessionId);
    return projectId === undefined ? undefined : { sessionId, minter: { keyId, projectId } };
  }

  async function admitLabel(label: string, purpose: Purpose): Promise<Admission> {
    const claims = purpose === 'base' ? await claimsOf(label) : undefined;
    if (!claims)
      throw errors.unauthorized({ detail: 'The host of this address is not one of a session that runs on this node.' });
    await refuseLapsed(claims.minter);
    return { ...claims, watchOnly: false };
  }

  async function refuseLapsed(minter: Minter): Promise<void> {
    const lapse = await lapseOf(minter);
    if (lapse) throw errors.unauthorized({ detail: `This address was made ${lapses[lapse]}. Ask for another.` });
  }

  const [hostsBefore = '', hostsAfter = ''] = sessionHosts.split('*');
  const suffix = hostsAfter.replace(/:\d+$/, '');

  return {
    /** The path of a request by its host and path: a session's own host replaces its base_url. */
    pathAt(host: string | undefined, path: string): string {
      const name = (host ?? '').replace(/:\d+$/, '').toLowerCase();
      if (suffix === '' || !name.endsWith(suffix)) return path;
      return `/browser/kernel/${LABEL}${name.slice(0, -suffix.length)}${path.startsWith('/') ? path : `/${path}`}`;
    },

    of(sessionId: string, minter: Minter, nodeId?: string, lease: string | null | undefined = leaseOf(sessionId)) {
      const holder = holderOf(sessionId, lease);
      const label =
        nodeId === undefined || leaseOf(sessionId) !== undefined ? labelOf(sessionId, minter, lease) : undefined;
      const http = publicUrl(nodeId);
      const ws = http.replace(/^http/, 'ws');
      return {
        cdp_ws_url: `${ws}/browser/cdp?jwt=${token(holder, 'cdp', minter)}`,
        webdriver_ws_url: `${ws}/browser/webdriver/session?jwt=${token(holder, 'webdriver', minter)}`,
        browser_live_view_url: `${http}/browser/live?jwt=${token(holder, 'live', minter)}`,
        // The token is in the path, not in the query: tools append /json/version to the URL as it is.
        base_url:
          label === undefined
            ? `${http}/browser/kernel/${token(holder, 'base', minter)}`
            : `${hostsBefore}${label}${hostsAfter}`,
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
      if (given.startsWith(LABEL)) return admitLabel(given.slice(LABEL.length), purpose);
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
      await refuseLapsed(minter);
      return { sessionId, minter, watchOnly: claims['watch_only'] === true };
    },
  };
}

function minterOf({ key, project }: Claims): Minter | undefined {
  return typeof key === 'string' && typeof project === 'string' ? { keyId: key, projectId: project } : undefined;
}

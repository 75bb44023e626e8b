import { captureOf, inReply } from '../telemetry/capture.ts';
import type { Addresses } from './addresses.ts';
import type { LiveSession } from './live-session.ts';
import { switchesOf, type Session } from './schema.ts';
import type { SessionRow } from './store.ts';

/** The state of a session without a query to its browser, on the node that runs it. */
export interface Known extends Pick<LiveSession, 'uptimeMs' | 'standingBy' | 'ending'> {
  readonly sight: Pick<LiveSession['sight'], 'uses' | 'endsAt' | 'frontPage'>;
}

/**
 * A session as its clients see it, with addresses that are valid for as long as the key `keyId` is. `here` is the session where this node
 * runs it.
 */
export function asSession(row: SessionRow, addresses: Addresses, keyId: string, here: Known | undefined): Session {
  const policy = row.policy ?? undefined;
  return {
    session_id: row.id,
    created_at: row.created_at.toISOString(),
    ...addresses.of(row.id, { keyId, projectId: row.project_id }, row.node_id, row.lease_id),
    ...switchesOf(row),
    timeout_seconds: row.timeout_seconds,
    viewport: {
      width: row.viewport_width,
      height: row.viewport_height,
      ...(row.refresh_rate === null ? {} : { refresh_rate: row.refresh_rate }),
    },
    ...(row.profile ? { profile: toProfile(row.profile), profile_save_changes: row.profile_saves } : {}),
    ...(row.pool_id ? { pool: { id: row.pool_id, ...(row.pool_name ? { name: row.pool_name } : {}) } } : {}),
    ...(row.name === null ? {} : { name: row.name }),
    ...(row.start_url === null ? {} : { start_url: row.start_url }),
    ...(row.proxy_id === null ? {} : { proxy_id: row.proxy_id }),
    ...(policy ? { engine_policy: policy, chrome_policy: policy } : {}),
    tags: row.tags,
    telemetry: inReply(captureOf(row.telemetry)),
    usage: { uptime_ms: here?.uptimeMs() ?? Number(row.uptime ?? row.uptime_ms) },
    state: stateOf(row, here),
    node_id: row.node_id,
    ...(here && !here.ending && !row.deleted_at ? whileLive(here.sight) : {}),
    ...(row.deleted_at ? { deleted_at: row.deleted_at.toISOString() } : {}),
    ...(row.ended_reason ? { ended_reason: row.ended_reason } : {}),
    ...(row.ended_detail ? { ended_detail: row.ended_detail } : {}),
  };
}

/** The row knows about standby on every node: its clock is paused. */
function stateOf(row: SessionRow, here: Known | undefined): NonNullable<Session['state']> {
  if (row.state !== 'live') return row.state;
  if (here?.ending) return 'stopping';
  return (here ? here.standingBy : row.awake_since === null) ? 'standby' : 'live';
}

function whileLive({ uses, endsAt, frontPage }: Known['sight']): Pick<Session, 'clients' | 'ends_at' | 'active_page'> {
  const { viewer, ...others } = uses;
  return {
    clients: { ...others, live_view: viewer },
    ...(endsAt ? { ends_at: endsAt.toISOString() } : {}),
    ...(frontPage
      ? {
          active_page: { url: frontPage.url, title: frontPage.title, seen_at: frontPage.seenAt.toISOString() },
        }
      : {}),
  };
}

const toProfile = ({ last_used_at, ...profile }: NonNullable<SessionRow['profile']>): Session['profile'] => ({
  ...profile,
  created_at: new Date(profile.created_at).toISOString(),
  updated_at: new Date(profile.updated_at).toISOString(),
  ...(last_used_at === null ? {} : { last_used_at: new Date(last_used_at).toISOString() }),
});

import { captureOf, inReply } from '../telemetry/capture.ts';
import type { Addresses } from './addresses.ts';
import type { Session } from './schema.ts';
import type { SessionRow } from './store.ts';

/** A session as its clients see it, with addresses that are valid for as long as the key `keyId` is. */
export function asSession(row: SessionRow, addresses: Addresses, keyId: string, uptimeMs: number): Session {
  const policy = row.policy ?? undefined;
  return {
    session_id: row.id,
    created_at: row.created_at.toISOString(),
    ...addresses.of(row.id, { keyId, projectId: row.project_id }, row.node_id, row.lease_id),
    headless: row.headless,
    stealth: row.stealth,
    gpu: row.gpu,
    kiosk_mode: row.kiosk_mode,
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
    usage: { uptime_ms: uptimeMs },
    ...(row.deleted_at ? { deleted_at: row.deleted_at.toISOString() } : {}),
    ...(row.ended_reason ? { ended_reason: row.ended_reason } : {}),
  };
}

const toProfile = ({ last_used_at, ...profile }: NonNullable<SessionRow['profile']>): Session['profile'] => ({
  ...profile,
  created_at: new Date(profile.created_at).toISOString(),
  updated_at: new Date(profile.updated_at).toISOString(),
  ...(last_used_at === null ? {} : { last_used_at: new Date(last_used_at).toISOString() }),
});

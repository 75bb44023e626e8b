import type { NewSession, SessionRow } from '../../src/sessions/store.ts';

/** A row of a session for which nothing was asked. */
export const newRow = (changes: Partial<NewSession> & { id: string }): NewSession => ({
  project_id: 'proj_test',
  node_id: 'node',
  name: null,
  tags: {},
  headless: true,
  stealth: false,
  gpu: false,
  kiosk_mode: false,
  timeout_seconds: 60,
  viewport_width: 1920,
  viewport_height: 1080,
  refresh_rate: null,
  start_url: null,
  policy: null,
  invocation_id: null,
  proxy_id: null,
  pool_id: null,
  pool_version: null,
  profile_id: null,
  profile_saves: false,
  telemetry: [],
  ...changes,
});

/** The same as the database gives it back. */
export const sessionRow = (changes: Partial<SessionRow> & { id: string }): SessionRow => ({
  ...newRow(changes),
  state: 'live',
  default_proxy_disabled: false,
  lease_id: null,
  uptime_ms: '0',
  awake_since: null,
  ended_reason: null,
  ended_detail: null,
  created_at: new Date(0),
  deleted_at: null,
  ...changes,
});

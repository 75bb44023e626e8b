import { conflict, entry } from './entry.ts';

/** Sessions: starting, reaching, showing and recording a browser. */
export const sessionErrors = {
  gpu_unavailable: entry(400, 'There is no GPU to run on.', (p: { detail: string }) => p.detail),
  engine_unavailable: entry(400, 'This machine lacks what the session needs.', (p: { detail: string }) => p.detail),
  session_not_found: entry(
    404,
    'No active session has that id or name.',
    (p: { session: string }) =>
      `No active session is '${p.session}'. GET /browsers lists them; status=deleted shows those that ended.`,
  ),
  replay_not_found: entry(
    404,
    'The session has no such replay, or its video is gone.',
    (p: { detail: string }) => p.detail,
  ),
  recording_limit_reached: conflict(
    'The session is being recorded as often as it may, or the recordings of the node take as much memory as they may.',
    (p: { most: number | 'memory' }) =>
      p.most === 'memory'
        ? 'The recordings of this node, or of this project there, take as much memory as they may. Stop one first, or record a session with a smaller viewport.'
        : `${p.most} recordings of this session are running, which is the most. Stop one first.`,
  ),
  viewport_in_use: conflict(
    'The live view has viewers, or the session is being recorded.',
    (p: { viewers: number; recordings: number }) =>
      p.viewers > 0
        ? `${p.viewers} live ${p.viewers === 1 ? 'view shows' : 'views show'} this session; changing the viewport would resize the page while they use it. Send viewport.force: true to change it anyway.`
        : `${p.recordings} ${p.recordings === 1 ? 'recording of this session is' : 'recordings of this session are'} under way, and a video has one size. Stop the recording first, or send viewport.force: true: it then goes on as another replay.`,
  ),
  session_limit_reached: entry(
    429,
    'The project has as many sessions as it may.',
    (p: { active: number; kept: number; cap: number }) =>
      `The project has ${p.active} active sessions${p.kept ? ` and keeps ${p.kept} places for its pools` : ''}, and may have ${p.cap}. Delete one, or raise max_concurrent_sessions of the project.`,
  ),
  too_many_connections: entry(
    429,
    'The session has as many websockets as it may.',
    (p: { most: number }) => `This session has ${p.most} open websockets, which is the most. Close one first.`,
  ),
  disk_overused: entry(
    429,
    'Sessions, builds or workers of the project were ended because the disk was short, so it waits before its next session, deployment or invocation. The wait doubles each time.',
    (p: { seconds: number }) =>
      `A session, a build or a worker of this project was ended because the disk of the node was short. The project may create its next session, deployment or invocation in ${p.seconds} s. Let sessions and apps write less to the disk.`,
  ),
  rate_limit_exceeded: entry(
    429,
    'Too many sessions were created in the last minute.',
    (p: { perMinute: number; seconds: number }) =>
      `At most ${p.perMinute} sessions a minute are created here. Try again in ${p.seconds} s.`,
  ),
  browser_did_not_start: entry(
    500,
    'The browser did not come up.',
    (p: { detail: string }) => `The browser did not start: ${p.detail}`,
  ),
  transport_failed: entry(
    502,
    'A request through the browser got no answer; net_error_name is Chromium’s word for why.',
    (p: { detail: string }) => p.detail,
  ),
  no_sandbox: entry(
    503,
    'The machine gives browsers no sandbox, so none is started.',
    (p: { reason: string }) =>
      `This machine gives browsers no sandbox, so none is started: ${p.reason} The operator finds the remedy with 'npm run doctor'; the service tries again by itself. CORRAL_ALLOW_UNSANDBOXED=true runs browsers without one.`,
  ),
  browser_silent: entry(
    504,
    'The browser, or its display, did not answer in time.',
    (p: { detail: string }) => `${p.detail} It hangs, was stopped, or its machine is too busy.`,
  ),
  capacity_exhausted: entry(
    529,
    'This node runs as many browsers as it may.',
    (p: { running: number; most: number }) =>
      `This node runs ${p.running} browsers, and ${p.most} is the most (CORRAL_MAX_SESSIONS). Try again when one has ended.`,
  ),
};

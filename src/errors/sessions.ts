import { conflict, entry } from './entry.ts';

/** Sessions: starting, reaching, showing and recording a browser. */
export const sessionErrors = {
  gpu_unavailable: entry(400, 'The machine has no usable GPU.', (p: { detail: string }) => p.detail),
  engine_unavailable: entry(
    400,
    'The machine lacks a program or feature that the session needs.',
    (p: { detail: string }) => p.detail,
  ),
  session_not_found: entry(
    404,
    'No active session has that id or name.',
    (p: { session: string }) =>
      `No active session is '${p.session}'. GET /browsers lists them; status=deleted shows ended sessions.`,
  ),
  replay_not_found: entry(
    404,
    'The session has no such replay, or its video was deleted.',
    (p: { detail: string }) => p.detail,
  ),
  recording_limit_reached: conflict(
    'The session has its maximum of recordings, or the recordings of the node take their maximum of memory.',
    (p: { most: number | 'memory' }) =>
      p.most === 'memory'
        ? 'The recordings of this node, or of this project on it, take the maximum of memory. Stop one first, or record a session with a smaller viewport.'
        : `${p.most} recordings of this session are running or being finished, which is the maximum. Stop one first, or retry when a video is finished.`,
  ),
  viewport_in_use: conflict(
    'The live view has viewers, or the session is being recorded.',
    (p: { viewers: number; recordings: number }) =>
      p.viewers > 0
        ? `${p.viewers} live ${p.viewers === 1 ? 'view shows' : 'views show'} this session; changing the viewport would resize the page while they use it. Send viewport.force: true to change it anyway.`
        : `${p.recordings} ${p.recordings === 1 ? 'recording of this session is' : 'recordings of this session are'} in progress, and a video has one size. Stop the recording first, or send viewport.force: true: the recording then continues as another replay.`,
  ),
  session_limit_reached: entry(
    429,
    'The project has its maximum of sessions.',
    (p: { active: number; kept: number; cap: number }) =>
      `The project has ${p.active} active sessions${p.kept ? ` and ${p.kept} places reserved for its pools` : ''}, and may have ${p.cap}. Delete one, or raise max_concurrent_sessions of the project.`,
  ),
  too_many_connections: entry(
    429,
    'The session has its maximum of websockets.',
    (p: { most: number; kind?: string }) =>
      `This session has ${p.most} open websockets${p.kind === undefined ? '' : ` of the kind ${p.kind}`}, which is the maximum. Close one first.`,
  ),
  too_many_streams: entry(
    429,
    'The session, the auth connection or the project has its maximum of event streams.',
    (p: { of: string; most: number }) =>
      `This ${p.of} has ${p.most} open event streams, which is the maximum. Close one first.`,
  ),
  disk_overused: entry(
    429,
    'Sessions, builds or workers of the project were ended because the disk was full, so the project must wait before its next session, deployment or invocation. The wait doubles each time.',
    (p: { seconds: number }) =>
      `A session, a build or a worker of this project was ended because the disk of the node was full. The project may create its next session, deployment or invocation in ${p.seconds} s. Let sessions and apps write less to the disk.`,
  ),
  rate_limit_exceeded: entry(
    429,
    'Too many sessions were created in the last minute.',
    (p: { perMinute: number; seconds: number }) =>
      `The service creates at most ${p.perMinute} sessions a minute. Try again in ${p.seconds} s.`,
  ),
  browser_did_not_start: entry(
    500,
    'The browser did not start.',
    (p: { detail: string }) => `The browser did not start: ${p.detail}`,
  ),
  transport_failed: entry(
    502,
    'A request through the browser got no answer; net_error_name is the reason in the terms of Chromium.',
    (p: { detail: string }) => p.detail,
  ),
  no_sandbox: entry(
    503,
    'The machine does not support a sandbox, so no browser is started.',
    (p: { reason: string }) =>
      `This machine does not support a sandbox, so no browser is started: ${p.reason} 'npm run doctor' shows the remedy; the service retries automatically. CORRAL_ALLOW_UNSANDBOXED=true runs browsers without a sandbox.`,
  ),
  browser_silent: entry(
    504,
    'The browser, or its display, did not answer in time.',
    (p: { detail: string }) => `${p.detail} It hangs, was stopped, or the machine is too busy.`,
  ),
  capacity_exhausted: entry(
    529,
    'This node runs its maximum of browsers.',
    (p: { running: number; most: number }) =>
      `This node runs ${p.running} browsers, and ${p.most} is the maximum (CORRAL_MAX_SESSIONS). Try again when a session has ended.`,
  ),
};

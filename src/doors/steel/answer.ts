import type { Session } from '../../sessions/schema.ts';
import { uuid, type statuses } from './schema.ts';

type Status = (typeof statuses)[number];

/** The id that clients of the other service have chosen is the session's name here, and both find it. */
const idOf = ({ session_id, name }: Session): string => (name !== undefined && uuid.test(name) ? name : session_id);

function statusOf({ state, deleted_at }: Session): Status {
  if (state === 'failed') return 'failed';
  return deleted_at === undefined && state !== 'stopping' && state !== 'stopped' ? 'live' : 'released';
}

/** A session in the form of the other service. Values that Corral does not count are 0. */
export function asSteel(session: Session, now = Date.now()) {
  const { created_at, deleted_at, timeout_seconds, viewport, headless, stealth, profile, proxy_id } = session;
  const ended = deleted_at === undefined ? now : Date.parse(deleted_at);
  const liveView = session.browser_live_view_url ?? '';
  return {
    id: idOf(session),
    createdAt: created_at,
    status: statusOf(session),
    duration: Math.max(0, ended - Date.parse(created_at)),
    timeout: timeout_seconds * 1000,
    dimensions: { width: viewport?.width ?? 0, height: viewport?.height ?? 0 },
    // It has a token of its own. Clients add `&apiKey=…` to it, which makes no difference.
    websocketUrl: session.cdp_ws_url,
    debugUrl: liveView,
    sessionViewerUrl: liveView,
    headless,
    isSelenium: false,
    solveCaptcha: false,
    stealthConfig: { skipFingerprintInjection: !stealth, humanizeInteractions: false, autoCaptchaSolving: false },
    deviceConfig: { device: 'desktop' },
    debugConfig: { interactive: true, systemCursor: true },
    optimizeBandwidth: {},
    proxySource: proxy_id === undefined ? null : 'external',
    proxyBytesUsed: 0,
    creditsUsed: 0,
    eventCount: 0,
    ...(profile ? { profileId: profile.id, persistProfile: session.profile_save_changes === true } : {}),
  };
}

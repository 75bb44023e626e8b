import type { Heartbeat } from '../../lib/heartbeat.ts';

/**
 * The heartbeat of both engines' websockets. The page counts on something each second (heartbeat.js) and shows a silence of
 * four. A viewer whose network is gone is dropped after half a minute: it keeps a session from idling.
 */
export const liveViewHeartbeat: Heartbeat = { text: '{"type":"alive"}', everyMs: 1000, dropAfter: 30 };

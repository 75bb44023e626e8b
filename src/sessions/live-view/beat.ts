/**
 * The heartbeat of both engines' websockets (lib/heartbeat.ts). The page counts on something each second (web/heartbeat.ts) and shows a
 * silence of four. A viewer without a network is dropped after half a minute: it keeps a session from idling.
 */
export const liveViewHeartbeat = { text: '{"type":"alive"}', everyMs: 1000, dropAfter: 30 };

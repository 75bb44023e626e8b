/** An event stream without events has a heartbeat after this time. Clients close a stream that is silent for longer. */
export const streamHeartbeatMs = 15_000;

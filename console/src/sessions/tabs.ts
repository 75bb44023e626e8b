export type SessionTab = 'view' | 'files' | 'terminal' | 'logs' | 'replays' | 'telemetry' | 'code';

/** The parts of a session's screen, in their order. */
export const sessionTabs: SessionTab[] = ['view', 'telemetry', 'files', 'terminal', 'logs', 'replays', 'code'];

export interface SessionTimings {
  /** The time without a use after which a session is frozen. */
  standbyMs: number;
  /** The length of one second of `timeout_seconds`. */
  secondMs: number;
}

/** The delays of idle sessions. Tests that wait for them pass shorter ones. */
export const timings: Readonly<SessionTimings> = { standbyMs: 5000, secondMs: 1000 };

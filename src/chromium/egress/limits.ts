/** The bounds of one session's gateway. */
export const defaultLimits = {
  /** Connections from inside the session at a time: many times what Chromium opens to one proxy. */
  clients: 512,
  /** Idle connections kept for plain http, over all origins. */
  idleUpstreams: 64,
  requestHeaderBytes: 64 * 1024,
  /** What Chromium itself would take. */
  responseHeaderBytes: 256 * 1024,
  /** For the headers of a request to arrive, all of them: an idle or dripping client goes. */
  headersMs: 60_000,
  /** Between requests. Longer than Chromium keeps an idle connection, so that it is never we who hang up on a request. */
  keepAliveMs: 330_000,
  /** For a tunnel of which one side has said its last word, without a byte from the other. Whole tunnels have no limit. */
  halfOpenMs: 60_000,
  /** For a proxy to say that a connection through it stands: it has to make one itself. */
  handshakeMs: 30_000,
  /** For a proxy to begin its answer to a plain request once it has all of it. */
  proxyAnswerMs: 120_000,
};

export type Limits = typeof defaultLimits;

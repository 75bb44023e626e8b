/** The bounds of one session's gateway. */
export const defaultLimits = {
  /** Simultaneous connections from inside the session: many times what Chromium opens to one proxy. */
  clients: 512,
  /** Connections to the network that are being opened at the same time: one for each connection from inside. */
  opening: 512,
  /** Idle connections kept for plain http, over all origins. */
  idleUpstreams: 64,
  requestHeaderBytes: 64 * 1024,
  /** Chromium's own limit. */
  responseHeaderBytes: 256 * 1024,
  /** Time for all headers of a request to arrive: idle or very slow clients are disconnected. */
  headersMs: 60_000,
  /** Between requests. Longer than Chromium keeps an idle connection, so that the gateway never closes one during a request. */
  keepAliveMs: 330_000,
  /** For a tunnel of which one side has ended, without a byte from the other. Tunnels with both sides open have no limit. */
  halfOpenMs: 60_000,
  /** For a proxy to confirm a connection: it has to open one itself. */
  handshakeMs: 30_000,
  /** For a proxy to begin its answer after it has received the whole plain request. */
  proxyAnswerMs: 120_000,
};

export type Limits = typeof defaultLimits;

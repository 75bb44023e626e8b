const forwardedRoutes = [
  /^\/browsers\/:/,
  /^\/browser\/kernel\/:token(\/|$)/,
  /^\/browser\/replays(\/|$)/,
  /^\/browser\/live$/,
];

/**
 * Whether another node may have to answer requests for a route: what belongs to a session, and its creation. No other request is forwarded,
 * and the reference names what a forwarded one may be refused with.
 */
export const mayBeElsewhere = (method: string, route: string): boolean =>
  (method === 'POST' && route === '/browsers') || forwardedRoutes.some((pattern) => pattern.test(route));

/** The paths that name a session by its id or name: those of the API, of WebDriver and of Steel. */
const sessionPath = /^(?:\/browsers|(?:\/wd\/hub)?\/session|\/v1\/sessions)\/:(\w+)/;

const forwardedRoutes = [
  sessionPath,
  /^\/browser\/kernel\/:token(\/|$)/,
  /^\/browser\/replays(\/|$)/,
  /^\/browser\/live$/,
];

/** The parameter of a route that has the id or name of a session. */
export const sessionParameter = (route: string): string | undefined => sessionPath.exec(route)?.[1];

/** Whether a request makes a session, which any node may do. */
export const isCreation = (method: string, route: string): boolean =>
  method === 'POST' &&
  /^(\/browsers|(\/wd\/hub)?\/session|\/v1\/sessions|(\/v1)?\/(screenshot|pdf|scrape)|\/(content|function))$/.test(
    route,
  );

/**
 * Whether another node may have to answer requests for a route: what belongs to a session, and its creation. No other request is forwarded,
 * and the reference names what a forwarded one may be refused with.
 */
export const mayBeElsewhere = (method: string, route: string): boolean =>
  isCreation(method, route) || forwardedRoutes.some((pattern) => pattern.test(route));
